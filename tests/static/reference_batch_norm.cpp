// The sums that batch normalization collects, and its moving statistics, worked out by hand.
#include "run_kernel.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

using op = operation_of<batch_norm<momentum<0.75_r>>>;
using code = kernel<reference, op, precision::f64, shape{2, 2}>;  // two positions, two channels
static_assert(code::traits.statistics == 4);

constexpr double x[] = {1, 10, 2, 20, 3, 30, 6, 60};  // two samples: channel 0 has 1 2 3 6, channel 1 ten times that
constexpr double dy[] = {1, 0, 1, 0, 1, 2, 1, 3};

constexpr std::array<double, 8> collected() {
  std::array<double, 8> sums{100};  // the sums of earlier micro-batches, to which this one adds
  operands<double> o;
  o.x[0] = x, o.dy = dy, o.statistics = sums.data();
  o.count = 2;
  code::collect(o);
  code::collect_backward(o);
  return sums;
}
static_assert(collected() == std::array<double, 8>{112, 120, 50, 5000, 4, 5, 12, 240});

// Means 3 and 30, biased variances 3.5 and 350: moving statistics go a quarter of the way there.
constexpr std::array<double, 4> moved() {
  double gamma[2] = {}, beta[2] = {}, mean[2] = {0, 10}, variance[2] = {1, 2}, sums[] = {12, 120, 50, 5000};
  double* w[] = {gamma, beta, mean, variance};
  operands<double> o;
  o.statistics = sums, o.total = 2;
  code::update_state(o, w);
  return {mean[0], mean[1], variance[0], variance[1]};
}
static_assert(moved() == std::array<double, 4>{0.75, 15, 1.625, 89});

// Without gamma and beta the state comes first.
constexpr double first_moving_mean() {
  double mean[2] = {}, variance[2] = {}, sums[] = {12, 120, 50, 5000};
  double* w[] = {mean, variance};
  operands<double> o;
  o.statistics = sums, o.total = 2;
  using plain = operation_of<batch_norm<momentum<0_r>, no_center, no_scale>>;
  kernel<reference, plain, precision::f64, shape{2, 2}>::update_state(o, w);
  return mean[1];
}
static_assert(first_moving_mean() == 30);
