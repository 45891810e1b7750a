// Padding of the arenas is zero after every step: for networks of many extents, every precision, number of threads, optimizer.
// flags: -DSTRATA_POISON
// Workspaces and gradients begin as signalling NaNs, so that the use of unwritten elements is detected.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <strata/strata.hpp>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

/// Extents from 1 to 40 that a seed chooses, so that vectors of every width are filled in part.
constexpr int extent(int seed, int layer) { return 1 + int(philox{std::uint64_t(seed)}(std::uint64_t(layer))[0] % 40); }

using regularized = kernel_regularizer<l1_l2<0.01_r, 0.02_r>>;

template <int Seed>
using dense_net = sequential<input<extent(Seed, 0)>, dense<extent(Seed, 1), regularized>, dense<extent(Seed, 2), relu, no_bias>,
                             layer_norm<>, dense<extent(Seed, 3), tanh_activation>, dense<1, regularized>>;
/// Layers whose weight gradients are passed on in one piece, in pieces, and, for few samples, as products.
using wide_net = sequential<input<70>, dense<33, relu>, dense<3, regularized>, dense<600>, dense<8>, dense<64, relu>, dense<1>>;
template <int Seed>
using image_net = sequential<input<8, 8, 1 + Seed % 4>, conv2d<extent(Seed, 0) / 4 + 1, 3, relu>, max_pool2d<2>,
                             residual<conv2d<extent(Seed, 0) / 4 + 1, 3, same_padding, no_bias>>, batch_norm<>, activation<relu>,
                             flatten, dense<extent(Seed, 1), regularized>, dense<1>>;
using word_net = sequential<input<5>, embedding<13, 7, embeddings_regularizer<l2<0.05_r>>>, layer_norm<>, global_average_pool1d,
                            dense<9>, dense<1>>;

/// The bits that are set between the elements of an arena; `offset`: of an arena of slots.
template <class P, class T>
int bits_of_padding(std::span<const T> arena, bool is_slot) {
  constexpr const auto& layout = layout_of_program<P>;
  std::vector<T> padding(arena.begin(), arena.end());
  for (int s = 0; s < layout.count; ++s)
    if (!is_slot || layout.slots[s].what.trainable)
      std::fill_n(padding.begin() + layout.slots[s].offset, layout.slots[s].what.extents.size(), T{});
  int count = 0;
  for (const T& p : padding) count += p != T{} || std::signbit(p);
  return count;
}

/// Checks the padding of the weights and of all slots.
template <class P, class Executor>
int bits_of_padding(Executor& executor, const typename P::optimizer& optimizer) {
  using T = typename P::value_type;
  constexpr auto trainable = std::size_t(layout_of_program<P>.trainable);
  int count = bits_of_padding<P, T>(executor.parameters(), false);
  for (int k = 0; k < optimizer.slots(); ++k)
    count += bits_of_padding<P, T>(executor.slots().subspan(std::size_t(k) * trainable, trainable), true);
  return count;
}

/// Trains twice, with one thread and with three: padding is zero after each step, weights are finite, and all bits are equal.
template <class P, class Backend>
void check(const typename P::optimizer& optimizer, int count) {
  using T = typename P::value_type;
  const random_batch<P> batch(count);
  std::vector<T> after[2];
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    synchronous_executor<P, Backend> executor(optimizer, 3, {.threads = threads, .leaves = 1});
    executor.prepare(count, purpose::training);
    double loss = 0;
    for (int step = 0; step < 3; ++step) {
      loss = executor.train_step(batch.view())[0].mean();
      REQUIRE(bits_of_padding<P>(executor, optimizer) == 0);
      REQUIRE(std::isfinite(loss));
    }
    for (const T w : executor.parameters()) REQUIRE(std::isfinite(w));
    std::vector<T>& all = after[threads > 1];
    all.assign(executor.parameters().begin(), executor.parameters().end());
    all.insert(all.end(), executor.slots().begin(), executor.slots().end());
    all.push_back(T(loss));
  }
  CHECK(after[0] == after[1]);
}

template <class Network, class Precision, class Optimizer, class Backend = cpu>
void check(const Optimizer& optimizer) {
  for (const int count : {1, 7, 20}) {
    CAPTURE(count);
    check<program<Network, mean_squared_error, Optimizer, type_list<>, Precision>, Backend>(optimizer, count);
  }
}

/// Trains from weights that are NaN.
template <class Network, class Precision, class Optimizer>
void diverge(const Optimizer& optimizer) {
  using P = program<Network, mean_squared_error, Optimizer, type_list<>, Precision>;
  using T = typename P::value_type;
  const random_batch<P> batch(7);
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    synchronous_executor<P, cpu> executor(optimizer, 3, {.threads = threads, .leaves = 1});
    executor.prepare(7, purpose::training);
    const parameter_slot& first = layout_of_program<P>.slots[0];
    std::fill_n(executor.parameters().begin() + first.offset, first.what.extents.size(), std::numeric_limits<T>::quiet_NaN());
    executor.parameters_changed();
    for (int step = 0; step < 2; ++step) {
      executor.train_step(batch.view());
      CHECK(std::isnan(executor.parameters()[0]));
      CHECK(bits_of_padding<P>(executor, optimizer) == 0);
    }
  }
}

const sgd plain_sgd{.learning_rate = 0.001},
    settings{.learning_rate = 0.001, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1, .clipvalue = 0.5};

}  // namespace

TEST_CASE_TEMPLATE("padding stays zero", Precision, precision::f32, precision::f64) {
  check<dense_net<1>, Precision>(plain_sgd);
  check<dense_net<1>, Precision>(settings);
  check<dense_net<2>, Precision>(adam{});
  check<dense_net<2>, Precision>(adam{.amsgrad = true, .global_clipnorm = 0.1});
  check<dense_net<3>, Precision>(rmsprop{.momentum = 0.5, .centered = true});
  check<dense_net<3>, Precision>(rmsprop{.clipnorm = 0.01});
  check<dense_net<2>, Precision>(nadam{.weight_decay = 0.1});
  check<dense_net<2>, Precision>(adamax{.clipvalue = 0.5});
  check<dense_net<2>, Precision>(adagrad{.global_clipnorm = 0.1});
  check<dense_net<2>, Precision>(adadelta{.learning_rate = 1});
  check<dense_net<2>, Precision>(lion{.clipnorm = 0.01});
  check<dense_net<2>, Precision>(ftrl{.l1_regularization_strength = 0.01, .beta = 1});
  check<dense_net<2>, Precision>(ftrl{.learning_rate_power = -0.25});
  check<wide_net, Precision>(plain_sgd);
  check<image_net<4>, Precision>(adam{.weight_decay = 0.1});
  check<word_net, Precision>(adam{});
}

TEST_CASE("padding stays zero where learning rate times weight decay is infinite as float") {
  diverge<dense_net<1>, precision::f32>(sgd{.learning_rate = 1e15, .weight_decay = 1e30});
  diverge<dense_net<1>, precision::f32>(adamw{.learning_rate = 1e15, .weight_decay = 1e30});
}

TEST_CASE_TEMPLATE("padding stays zero after training has diverged", Precision, precision::f32, precision::f64) {
  diverge<dense_net<1>, Precision>(plain_sgd);
  diverge<image_net<4>, Precision>(plain_sgd);
  diverge<word_net, Precision>(plain_sgd);
  diverge<dense_net<1>, Precision>(sgd{.learning_rate = std::numeric_limits<double>::infinity()});
  diverge<dense_net<1>, Precision>(sgd{.momentum = 0.9, .nesterov = true, .clipnorm = 0.1});
  diverge<dense_net<1>, Precision>(adam{.global_clipnorm = 0.1});
  diverge<dense_net<1>, Precision>(rmsprop{.momentum = 0.5, .centered = true, .clipnorm = 0.1});
  diverge<dense_net<1>, Precision>(lion{.clipnorm = 0.1});
  diverge<dense_net<1>, Precision>(ftrl{.clipnorm = 0.1});
  diverge<dense_net<1>, Precision>(lamb{});
  diverge<dense_net<1>, Precision>(lamb{.global_clipnorm = 0.1});
}

TEST_CASE("padding stays zero with bf16 storage") {
  check<dense_net<1>, precision::mixed_bf16>(settings);
  check<image_net<4>, precision::mixed_bf16>(adam{});
}

TEST_CASE("padding stays zero on the reference backend") { check<dense_net<1>, precision::f64, sgd, reference>(settings); }

TEST_CASE("padding of a weight is not in its penalty, whatever is there") {
  using P = program<sequential<input<9>, dense<3, regularized>, dense<1, regularized>>, mean_squared_error, sgd, type_list<>,
                    precision::f64>;
  const random_batch<P> batch(4);
  constexpr const auto& layout = layout_of_program<P>;
  double loss[2];
  for (const bool filled : {false, true}) {
    synchronous_executor<P, cpu> executor(sgd{}, 3, {.threads = 1});
    executor.prepare(4, purpose::inference);
    if (filled)
      for (int s = 0; s < layout.count; ++s)
        for (long i = layout.slots[s].offset + layout.slots[s].what.extents.size(); i % 16 != 0; ++i)
          executor.parameters()[std::size_t(i)] = 1e9;
    loss[filled] = executor.evaluate_step(batch.view())[0].mean();
  }
  CHECK(loss[0] == loss[1]);
}
