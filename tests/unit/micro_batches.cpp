// A leaf is computed in micro-batches; with batch_norm, the data of all its samples are kept between the passes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <strata/strata.hpp>

#include "gradient_check.hpp"
#include "larger.hpp"
#include "repetitions.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

template <int Filters>
using normalised = branch<conv2d<Filters, 3, same_padding, no_bias>, batch_norm<>, activation<relu>>;

// Between two batch_norms, buffers of several sizes are allocated and freed in an order in which some fit where larger ones were.
using shrinking = sequential<input<8, 8, 3>, normalised<8>, max_pool2d<2>, conv2d<8, 3, same_padding, relu>, normalised<16>,
                             max_pool2d<2>, conv2d<24, 1>, normalised<8>, global_average_pool2d, dense<5, softmax>>;
using varying =
    sequential<input<8, 8, 3>, normalised<8>, average_pool2d<2>, normalised<40>, conv2d<8, 1, tanh_activation>,
               conv2d<20, 1, tanh_activation>, average_pool2d<2>, normalised<8>, conv2d<3, 1>, flatten, dense<5, softmax>>;
using growing = sequential<input<8, 8, 3>, conv2d<4, 1>, conv2d<12, 1>, conv2d<2, 3>, batch_norm<>, conv2d<2, 1>,
                           conv2d<14, 1, relu>, conv2d<3, 1>, batch_norm<>, max_pool2d<2>, flatten, dense<5, softmax>>;
using joined = sequential<input<8, 8, 3>, normalised<8>, residual<normalised<8>, conv2d<8, 1>>, max_pool2d<2>, normalised<24>,
                          residual<conv2d<6, 1>, normalised<24>>, global_average_pool2d, dense<5, softmax>>;

constexpr int samples_of_batch = repetitions(512, 128);

/// The parameters after some steps, each cut into so many leaves.
template <class Network>
std::vector<float> stepped(int leaves, int steps = 1) {
  using P = program<Network, sparse_categorical_crossentropy<>, sgd, type_list<>>;
  synchronous_executor<P, cpu> executor(sgd{.learning_rate = 0.1}, 3, {.threads = 1, .leaves = leaves});
  executor.prepare(samples_of_batch, purpose::training);
  for (int i = 0; i < steps; ++i) executor.train_step(random_batch<P>(samples_of_batch, 7).view());
  const std::span<float> w = executor.parameters();
  return {w.begin(), w.end()};
}

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = larger(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

}  // namespace

TEST_CASE_TEMPLATE("a leaf of many micro-batches has the gradient of many leaves of one", Network, shrinking, varying, growing,
                   joined) {
  using P = program<Network, sparse_categorical_crossentropy<>, sgd, type_list<>>;
  static_assert(plan_of<P, cpu>.needs_whole_leaf() && plan_of<P, cpu>.passing > 0);
  const std::vector<float> before = stepped<Network>(1, 0), together = stepped<Network>(1);
  const double step = apart(before, together);
  REQUIRE(step > 1e-3);
  for (const int leaves : {8, samples_of_batch / 4})  // the latter: of 4 samples, the smallest micro-batch
    CHECK_MESSAGE(apart(stepped<Network>(leaves), together) < 1e-4 * step, leaves, " leaves");
}

TEST_CASE_TEMPLATE("with a batch of one row, Adam does not move what stands before batch_norm", Precision, precision::f32,
                   precision::f64) {
  using net =
      sequential<input<7>, dense<9>, batch_norm<>, dense<5>, batch_norm<>, activation<tanh_activation>, dense<3, softmax>>;
  using P = program<net, sparse_categorical_crossentropy<>, adam, type_list<>, Precision>;
  constexpr const auto& layout = layout_of_program<P>;
  synchronous_executor<P, cpu> executor(adam{}, 3, {.threads = 1});
  executor.prepare(1, purpose::training);
  const auto start = std::vector(executor.parameters().begin(), executor.parameters().end());
  for (int i = 0; i < 3; ++i) executor.train_step(random_batch<P>(1, std::uint64_t(7 + i)).view());
  const auto has_moved = [&](int s) {
    const std::size_t at = std::size_t(layout.slots[s].offset);
    return !std::equal(start.begin() + long(at), start.begin() + long(at) + layout.slots[s].what.extents.size(),
                       executor.parameters().begin() + long(at));
  };
  // kernel, bias | gamma, beta, state | kernel, bias | gamma, beta, state | kernel, bias
  for (const int s : {0, 1, 2, 6, 7, 8}) CHECK_MESSAGE(!has_moved(s), "parameter ", s);
  for (const int s : {4, 5, 9, 11, 12, 13}) CHECK_MESSAGE(has_moved(s), "parameter ", s);
}
