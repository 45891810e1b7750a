// The plan of inference: batch normalization is folded into the layer before it, dropout is removed, and predictions stay the
// same.
#include <doctest/doctest.h>

#include <sstream>
#include <strata/kernel/unfused.hpp>
#include <strata/strata.hpp>

#include "gradient_check.hpp"
#include "larger.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using convolutions = sequential<input<9, 7, 3>, conv2d<18, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
                                conv2d<5, 3>, batch_norm<no_scale>, activation<relu>, max_pool2d<2>, dropout<0.5_r>,
                                residual<conv2d<5, 1>, batch_norm<no_center>>, global_average_pool2d, dense<4, softmax>>;
using dense_layers = sequential<input<11>, dense<13>, batch_norm<epsilon<0.01_r>>, activation<relu>, dropout<0.2_r>, batch_norm<>,
                                dense<6, no_bias>, batch_norm<>, dense<4, softmax>>;

template <class Network, class Precision = precision::f32>
using training = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>, Precision>;

template <class P>
std::vector<double> predicted(auto& executor, const random_batch<P>& batch) {
  std::vector<typename P::value_type> out(batch.labels.size() * 4);
  executor.predict(batch.view(), out.data());
  return {out.begin(), out.end()};
}

/// Largest difference.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = larger(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("in inference batch_norm and dropout are no groups of their own") {
  using P = training<convolutions>;
  static_assert(plan_of<P, cpu>.segment_count == 4);
  static_assert(plan_of<P, cpu, purpose::inference>.segment_count == 1);
  // convolution + batch_norm + relu, the same + pooling, 1x1 + batch_norm, add, pooling, dense + ...
  static_assert(plan_of<P, cpu, purpose::inference>.groups[0].count == 3);
  static_assert(plan_of<P, cpu, purpose::inference>.groups[1].count == 4);
  static_assert(plan_of<P, cpu, purpose::inference>.groups[2].count == 2);
  static_assert(plan_of<P, cpu, purpose::inference>.workspace == 0);
  static_assert(plan_of<P, cpu, purpose::inference>.passing < plan_of<P, cpu>.workspace);
  static_assert(plan_of<P, unfused<cpu>>.group_count == 15);
  static_assert(plan_of<P, unfused<cpu>, purpose::inference>.group_count == 14);

  using D = training<dense_layers>;
  static_assert(plan_of<D, cpu, purpose::inference>.groups[0].count == 3);
  static_assert(plan_of<D, cpu, purpose::inference>.groups[1].count == 1);  // a batch_norm without a layer before it
}

TEST_CASE("a network without them has one plan") {
  using P = training<sequential<input<5>, dense<4, softmax>>>;
  CHECK(&plan_of<P, cpu> == &plan_of<P, cpu, purpose::inference>);
}

TEST_CASE("print_plan of a trainer shows both plans") {
  trainer model{dense_layers{}, adam{}, sparse_categorical_crossentropy{}};
  std::ostringstream out;
  print_plan(model, out);
  CHECK(out.str().starts_with("plan on cpu in f32: "));
  const std::size_t second = out.str().find("\nplan of inference on cpu in f32: ");
  REQUIRE(second != std::string::npos);
  CHECK(out.str().find("affine + batch_normalization + relu", second) != std::string::npos);
  CHECK(out.str().find("backward", second) == std::string::npos);
}

TEST_CASE_TEMPLATE("folded predictions are those of the plain loops", Network, convolutions, dense_layers) {
  using P = training<Network>;
  using D = training<Network, precision::f64>;
  synchronous_executor<P, cpu> fast(adam{.learning_rate = 0.01}, 3, {.threads = 2, .leaves = 4});
  synchronous_executor<P, unfused<cpu>> alone(adam{}, 3, {.threads = 1});
  synchronous_executor<D, reference> exact(adam{}, 3, {.threads = 1});
  const random_batch<P> batch(24);
  const random_batch<D> same(24);
  fast.prepare(24, purpose::training);
  fast.prepare(24, purpose::inference), alone.prepare(24, purpose::inference), exact.prepare(24, purpose::inference);

  for (int step = 0; step < 4; ++step) {  // so that the moving statistics matter, and change between predictions
    fast.train_step(batch.view());
    std::ranges::copy(fast.parameters(), alone.parameters().begin());
    std::ranges::copy(fast.parameters(), exact.parameters().begin());
    alone.parameters_changed(), exact.parameters_changed();
    const auto expected = predicted<D>(exact, same);
    CHECK(apart(predicted<P>(fast, batch), expected) < 2e-6);
    CHECK(apart(predicted<P>(alone, batch), expected) < 2e-6);
    CHECK(fast.evaluate_step(batch.view())[0].mean() ==
          doctest::Approx(exact.evaluate_step(same.view())[0].mean()).epsilon(1e-5));
  }
}
