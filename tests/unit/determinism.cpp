// Same seed, same bits: for any number of threads and any micro-batch; short batches weigh each sample equally.
#include <doctest/doctest.h>

#include <cstring>
#include <strata/strata.hpp>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using plain =
    sequential<input<9, 9, 2>, conv2d<7, 3, relu>, max_pool2d<2>, flatten, dense<11, relu>, dropout<0.3_r>, dense<5, softmax>>;
using normalised = sequential<input<6, 6, 3>, conv2d<4, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
                              residual<conv2d<4, 3, same_padding>, batch_norm<>>, global_average_pool2d, dense<5, softmax>>;

using dense_layers = sequential<input<40>, dense<48, relu, kernel_regularizer<l2<0.01_r>>>, dense<32, no_bias>,
                                dense<19, sigmoid>, dense<5, softmax>>;

/// The layers are wide enough for zeros of the input to be skipped.
using sparse = sequential<input<100>, dense<64, relu>, dense<32, relu>, dense<5, softmax>>;
static_assert(simd::dense_products<float, 100, 64>::looks_for_zeros && simd::dense_products<float, 64, 32>::looks_for_zeros);

/// Sets four fifths of the elements to zero. Every sixth sample stays full, so that only some parts of a batch skip zeros.
template <class T>
void make_sparse(std::vector<T>& x, std::size_t size) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i / size % 6 != 5 && philox{31}.uniform(i) >= 0.05) x[i] = 0;
  CHECK(simd::many_zeros(x.data(), std::ptrdiff_t(x.size()), 64));
  if (x.size() > 5 * size) CHECK_FALSE(simd::many_zeros(x.data() + 5 * size, std::ptrdiff_t(size), 64));
}

/// The parameters after a step on each of some batches of the given sizes.
template <class Network, class Optimizer = adam>
std::vector<float> trained(compute_options how, std::initializer_list<int> sizes, std::uint64_t seed = 5) {
  using P = program<Network, sparse_categorical_crossentropy<>, Optimizer, type_list<accuracy>>;
  synchronous_executor<P, cpu> executor(Optimizer{.learning_rate = 0.01}, seed, how);
  executor.prepare(24, purpose::training);
  std::uint64_t key = 0;
  for (int size : sizes) {
    random_batch<P> batch(size, ++key);
    if constexpr (std::is_same_v<Network, sparse>) make_sparse(batch.x, std::size_t(Network::input_shape.size()));
    executor.train_step(batch.view());
  }
  const std::span<float> w = executor.parameters();
  return {w.begin(), w.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE_TEMPLATE("the bits do not depend on who computes", Network, plain, normalised, sparse) {
  const auto sizes = {24, 24, 7, 24, 1};
  const std::vector<float> one = trained<Network>({.threads = 1, .leaves = 4}, sizes);
  CHECK(same_bits(one, trained<Network>({.threads = 1, .leaves = 4}, sizes)));
  CHECK(same_bits(one, trained<Network>({.threads = 2, .leaves = 4}, sizes)));
  CHECK(same_bits(one, trained<Network>({.threads = 3, .leaves = 4}, sizes)));
  CHECK(same_bits(one, trained<Network>({.threads = 4, .leaves = 4, .micro_batch = 1}, sizes)));
  CHECK(same_bits(one, trained<Network>({.threads = 2, .leaves = 4, .micro_batch = 5}, sizes)));
  CHECK_FALSE(same_bits(one, trained<Network>({.threads = 1, .leaves = 4}, sizes, 6)));
}

TEST_CASE_TEMPLATE("one thread that updates each parameter as soon as its gradient is known gives the same bits", Network, plain,
                   dense_layers, sparse) {
  // Two threads store gradients first, even those of a single leaf.
  const auto sizes = {1, 8, 3, 12, 1};
  CHECK(same_bits(trained<Network>({.threads = 1, .leaves = 1}, sizes), trained<Network>({.threads = 2, .leaves = 1}, sizes)));
  CHECK(same_bits(trained<Network>({.threads = 1, .leaves = 1, .micro_batch = 4}, sizes),
                  trained<Network>({.threads = 1, .leaves = 1}, sizes)));
}

TEST_CASE("metrics that add up several numbers: the bits do not depend on who computes") {
  using P = program<plain, sparse_categorical_crossentropy<>, adam,
                    type_list<accuracy, auc<>, confusion_matrix<>, precision_score<>, f1_score<micro_average>>>;
  constexpr std::size_t pairs = 1 + 1 + 200 + 13 + 1 + 8;
  static_assert(std::tuple_size_v<metric_sums<P>> == pairs);
  const auto sums_with = [](compute_options how) {
    synchronous_executor<P, cpu> executor(adam{.learning_rate = 0.01}, 5, how);
    executor.prepare(24, purpose::training);
    std::vector<double> sums;
    for (const int size : {24, 7, 24, 1}) {
      const random_batch<P> batch(size, std::uint64_t(size));
      for (const metric_sum& s : executor.train_step(batch.view())) sums.insert(sums.end(), {s.sum, s.count});
    }
    return sums;
  };
  const std::vector<double> one = sums_with({.threads = 1, .leaves = 4});
  double of_matrix = 0;  // of the first step: each sample is in one cell
  for (std::size_t i = 2 * (2 + 200); i < 2 * (2 + 200 + 13); ++i) of_matrix += one[i];
  CHECK(of_matrix == 24);
  for (const int threads : {2, 3, 4}) CHECK(sums_with({.threads = threads, .leaves = 4}) == one);
  CHECK(sums_with({.threads = 2, .leaves = 4, .micro_batch = 1}) == one);
}

TEST_CASE("an optimizer with norms: the bits depend neither on the number of threads nor on how a leaf is computed") {
  const auto sizes = {24, 24, 7, 24, 1};
  const std::vector<float> four = trained<dense_layers, lamb>({.threads = 1, .leaves = 4}, sizes);
  for (const int threads : {2, 3, 7})
    CHECK(same_bits(four, trained<dense_layers, lamb>({.threads = threads, .leaves = 4}, sizes)));
  CHECK(same_bits(four, trained<dense_layers, lamb>({.threads = 2, .leaves = 4, .micro_batch = 3}, sizes)));
  // With one thread and one leaf, each parameter would be updated at once, if there were no norms.
  const std::vector<float> one = trained<dense_layers, lamb>({.threads = 1, .leaves = 1}, sizes);
  CHECK(same_bits(one, trained<dense_layers, lamb>({.threads = 2, .leaves = 1}, sizes)));
  CHECK(same_bits(one, trained<dense_layers, lamb>({.threads = 1, .leaves = 1, .micro_batch = 5}, sizes)));
}

TEST_CASE_TEMPLATE("optimizers whose steps depend on their number or on the sign of a gradient", Optimizer, nadam, lion, ftrl) {
  const auto sizes = {24, 24, 7, 24, 1};
  const std::vector<float> four = trained<dense_layers, Optimizer>({.threads = 1, .leaves = 4}, sizes);
  CHECK(same_bits(four, trained<dense_layers, Optimizer>({.threads = 3, .leaves = 4}, sizes)));
  CHECK(same_bits(four, trained<dense_layers, Optimizer>({.threads = 2, .leaves = 4, .micro_batch = 3}, sizes)));
  CHECK(same_bits(trained<dense_layers, Optimizer>({.threads = 1, .leaves = 1}, sizes),
                  trained<dense_layers, Optimizer>({.threads = 2, .leaves = 1}, sizes)));
}

TEST_CASE("a short batch is the mean over its own samples") {
  // The same three samples twice have the same mean gradient as once.
  using P = program<plain, sparse_categorical_crossentropy<>, keep_gradient, type_list<>, precision::f64>;
  using without_dropout =
      sequential<input<9, 9, 2>, conv2d<7, 3, relu>, max_pool2d<2>, flatten, dense<11, relu>, dense<5, softmax>>;
  using Q = program<without_dropout, sparse_categorical_crossentropy<>, keep_gradient, type_list<>, precision::f64>;
  const random_batch<Q> three(3);
  random_batch<Q> six = three;
  six.x.insert(six.x.end(), three.x.begin(), three.x.end());
  six.labels.insert(six.labels.end(), three.labels.begin(), three.labels.end());
  static_assert(layout_of_program<P>.size == layout_of_program<Q>.size);

  synchronous_executor<Q, cpu> a(keep_gradient{}, 1, {.threads = 2, .leaves = 4}),
      b(keep_gradient{}, 1, {.threads = 2, .leaves = 4});
  a.prepare(64, purpose::training);
  b.prepare(64, purpose::training);
  const auto loss_a = a.train_step(three.view()), loss_b = b.train_step(six.view());
  CHECK(loss_a[0].count == 3);
  CHECK(loss_b[0].count == 6);
  CHECK(loss_a[0].mean() == doctest::Approx(loss_b[0].mean()).epsilon(1e-12));
  for (std::size_t i = 0; i < a.slots().size(); ++i)
    CHECK(a.slots()[i] == doctest::Approx(b.slots()[i]).epsilon(1e-9).scale(1e-3));
}
