// Adafactor: moments of rows and columns of every matrix of a parameter, on any number of threads and with any vectors.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <tools/reduced.hpp>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "larger.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using numbers = std::vector<double>;

/// Extents (2, 3, 4, 21), (70, 37), (1, 40), (40, 1) and (5); the second with a penalty.
const std::vector<parameter_range> ranges{
    {.begin = 0, .end = 512, .elements = 504, .rows = 4, .columns = 21},
    {.begin = 512, .end = 3104, .regularizer = {0.03, 0.02}, .elements = 2590, .rows = 70, .columns = 37},
    {.begin = 3104, .end = 3152, .elements = 40, .rows = 1, .columns = 40},
    {.begin = 3152, .end = 3200, .elements = 40, .rows = 40, .columns = 1},
    {.begin = 3200, .end = 3216, .elements = 5}};
constexpr long size = 3216;

bool is_padding(long i) {
  return std::ranges::none_of(ranges, [i](const parameter_range& p) { return i >= p.begin && i < p.begin + p.elements; });
}

template <class T>
struct model {
  arena<T> weights{std::size_t(size)}, slots{std::size_t(size)};
  std::vector<arena<T>> leaves;
  arena<double> norms{std::size_t(weight_update<T, adafactor>::norm_count(ranges))};

  explicit model(int leaf_count) {
    for (int l = 0; l < leaf_count; ++l) leaves.emplace_back(std::size_t(size));
    for (long i = 0; i < size; ++i)
      if (!is_padding(i)) weights[std::size_t(i)] = T(philox{1}.uniform(std::uint64_t(i)) - 0.5);
  }
  void fill_leaves(long step) {
    for (std::size_t l = 0; l < leaves.size(); ++l)
      for (long i = 0; i < size; ++i)
        if (!is_padding(i)) leaves[l][std::size_t(i)] = T(philox{10 + l}.uniform(std::uint64_t(i), std::uint64_t(step)) - 0.4);
  }
  void step(const adafactor& o, long number, int ranks = 1) {
    fill_leaves(number);
    T* slot[1] = {slots.data()};
    std::vector<T*> at;
    for (arena<T>& each : leaves) at.push_back(each.data());
    const double rate = o.learning_rate(number);
    const weight_update<T, adafactor> update{o, rate, ranges, weights.data(), slot, norms.data()};
    o.with_rule<T>(number, rate, [&](const auto& rule) {
      update.run(rule, reduced(at.data(), int(at.size()), 3), [&](auto&& f) {
        for (int r = 0; r < ranks; ++r) {
          const element_range slice = slice_of({0, size}, r, ranks);
          f(slice.begin, slice.end);
        }
      });
    });
  }
};

double root_mean_square(const numbers& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / double(x.size()));
}

/// The algorithm of the paper in double, one element at a time.
numbers textbook(const adafactor& o, int leaf_count, int steps) {
  model<double> m(leaf_count);
  numbers w(m.weights.data(), m.weights.data() + size);
  std::vector<numbers> rows(ranges.size()), columns(ranges.size());
  for (int t = 0; t < steps; ++t) {
    m.fill_leaves(t);
    const double rate = o.learning_rate(t), keep = 1 - std::pow(t + 1, o.beta_2_decay);
    std::vector<numbers> gradients;
    double square_of_all = 0;
    for (const parameter_range& p : ranges) {
      numbers& g = gradients.emplace_back();
      for (long i = p.begin; i < p.begin + p.elements; ++i) {
        double sum = 0;
        for (const auto& leaf : m.leaves) sum += leaf[std::size_t(i)] / 3;
        const double x = w[std::size_t(i)];
        g.push_back(sum + p.regularizer.l1 * (x > 0 ? 1 : -1) + 2 * p.regularizer.l2 * x);
        square_of_all += g.back() * g.back();
      }
    }
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      const parameter_range& p = ranges[k];
      numbers& g = gradients[k];
      const double norm = root_mean_square(g) * std::sqrt(double(g.size()));
      numbers own(&w[std::size_t(p.begin)], &w[std::size_t(p.begin)] + p.elements), direction;
      for (double& each : own) each -= each * o.weight_decay * rate;
      const auto C = std::size_t(p.columns), R = std::size_t(p.rows), N = std::size_t(p.elements);
      rows[k].resize(N), columns[k].resize(N);
      for (double& each : g) {
        if (o.clipnorm > 0) each *= o.clipnorm / std::max(o.clipnorm, norm);
        if (o.global_clipnorm > 0) each *= o.global_clipnorm / std::max(o.global_clipnorm, std::sqrt(square_of_all));
        if (o.clipvalue > 0) each = std::clamp(each, -o.clipvalue, o.clipvalue);
      }
      const auto square = [&](std::size_t i) { return g[i] * g[i] + o.epsilon_1; };
      const auto follow = [&](double& moment, double mean) { moment = keep * moment + (1 - keep) * mean; };
      for (std::size_t i = 0; i < N; ++i) {
        if (p.rows < 2 || p.columns < 2) {
          follow(rows[k][i], square(i));
          direction.push_back(g[i] / std::sqrt(rows[k][i]));
          continue;
        }
        const std::size_t matrix = i / (R * C), row = i / C % R, column = i % C, begin = matrix * R * C;
        if (i == begin) {
          for (std::size_t r = 0; r < R; ++r) {
            double sum = 0;
            for (std::size_t c = 0; c < C; ++c) sum += square(begin + r * C + c);
            follow(rows[k][matrix * R + r], sum / double(C));
          }
          for (std::size_t c = 0; c < C; ++c) {
            double sum = 0;
            for (std::size_t r = 0; r < R; ++r) sum += square(begin + r * C + c);
            follow(columns[k][matrix * C + c], sum / double(R));
          }
        }
        double mean = 0;
        for (std::size_t r = 0; r < R; ++r) mean += rows[k][matrix * R + r] / double(R);
        direction.push_back(g[i] / std::sqrt(rows[k][matrix * R + row] / mean * columns[k][matrix * C + column]));
      }
      const double step = std::min(rate, 1 / std::sqrt(t + 1.)) * std::max(o.epsilon_2, root_mean_square(own)) /
                          std::max(1., root_mean_square(direction) / o.clip_threshold);
      for (std::size_t i = 0; i < N; ++i) w[std::size_t(p.begin) + i] = own[i] - step * direction[i];
    }
  }
  return w;
}

void check(const adafactor& o, int leaf_count) {
  const numbers expected = textbook(o, leaf_count, 5);
  const auto worst = [&]<class T>(T) {
    model<T> m(leaf_count);
    double worst = 0;
    for (int t = 0; t < 5; ++t) m.step(o, t);
    for (long i = 0; i < size; ++i) worst = larger(worst, std::abs(double(m.weights[std::size_t(i)]) - expected[std::size_t(i)]));
    return worst;
  };
  CHECK(worst(double{}) < 1e-12);
  CHECK(worst(float{}) < 2e-5);
}

using net = sequential<input<6, 6, 2>, conv2d<5, 3, relu>, flatten, dense<9, tanh_activation>, dense<3, softmax>>;

template <class... Strategy>
auto make(const Strategy&... strategy) {
  return trainer{net{}, adafactor{.learning_rate = 0.05, .weight_decay = 0.01}, sparse_categorical_crossentropy{}, strategy...};
}

}  // namespace

TEST_CASE("adafactor computes what the paper says, for matrices, several of them, rows, columns and vectors") {
  check(adafactor{.learning_rate = 0.5}, 4);
  check(adafactor{.learning_rate = 0.1, .beta_2_decay = -0.5, .epsilon_1 = 1e-3, .epsilon_2 = 0.7, .clip_threshold = 0.4}, 1);
  check(adafactor{.learning_rate = 0.1, .weight_decay = 0.3}, 2);
  check(adafactor{.learning_rate = 0.1, .clipnorm = 0.5}, 3);
  check(adafactor{.learning_rate = 0.1, .clipvalue = 0.05}, 17);
  check(adafactor{.learning_rate = 0.1, .global_clipnorm = 0.5}, 4);
}

TEST_CASE("adafactor: padding stays zero, and bits depend neither on threads nor on vectors") {
  const adafactor o{.learning_rate = 0.1, .weight_decay = 0.01, .clipnorm = 0.5};
  const auto after = [&](int ranks) {
    model<float> m(4);
    for (int t = 0; t < 4; ++t) m.step(o, t, ranks);
    return std::vector<float>(m.weights.data(), m.weights.data() + size);
  };
  const std::vector<float> one = after(1);
  for (long i = 0; i < size; ++i)
    if (is_padding(i)) CHECK(one[std::size_t(i)] == 0);
  for (const int ranks : {2, 3, 4}) CHECK(after(ranks) == one);
  // The value is that of g++ 12 and clang 14 with SSE4.2, AVX2 and AVX-512, with and without FMA, from -O0 to -O3.
  std::uint64_t hash = 14695981039346656037u;
  for (const float w : one) hash = (hash ^ std::bit_cast<std::uint32_t>(w)) * 1099511628211u;
  CHECK(hash == 14845619341697762961u);
}

TEST_CASE("adafactor trains alike on any number of threads and processes, and its average follows") {
  const std::vector<float> x = random_numbers<float>(40 * 72, 5);
  std::vector<int> y;
  for (int i = 0; i < 40; ++i) y.push_back(i * i % 3);
  const auto fit = [&](auto& model) { return model.fit(x, y, epochs(8), batch_size(16), verbose::off)["loss"]; };
  auto one = make(one_device{{.threads = 1, .leaves = 4}});
  const auto loss = fit(one);
  CHECK(loss.back() < loss.front());
  auto threads = make(mirrored{cpus(3), {.leaves = 4}});
  CHECK(fit(threads) == loss);
  CHECK(std::ranges::equal(threads.parameters(), one.parameters()));

  std::vector<in_process> links = in_process::group(2);
  std::vector<std::vector<float>> weights(2);
  {
    std::vector<std::jthread> processes;
    for (std::size_t r = 0; r < 2; ++r)
      processes.emplace_back([&, r] {
        const synchronous_among strategy{std::move(links[r]), compute_options{.threads = 1, .leaves = 4}};
        auto model = make(strategy);
        fit(model);
        weights[r].assign(model.parameters().begin(), model.parameters().end());
      });
  }
  for (const std::vector<float>& each : weights) CHECK(std::ranges::equal(each, one.parameters()));

  trainer averaged{net{}, ema{adafactor{.learning_rate = 0.05, .weight_decay = 0.01}}, sparse_categorical_crossentropy{},
                   one_device{{.threads = 1, .leaves = 4}}};
  CHECK(fit(averaged) == loss);
}

TEST_CASE("adafactor: a row and a column of a matrix without a gradient") {
  // The last input is 0, and the first unit is never active.
  using small = sequential<input<4>, dense<3, relu>, dense<1>>;
  const std::vector<float> x{0.5f, -1, 2, 0, 1, 0.25f, -0.5f, 0}, y{1, -1};
  const auto check = [&](auto precision) {
    trainer model{small{}, adafactor{}, mean_squared_error{}, one_device{{.threads = 1}}, precision};
    std::vector<float> weights(model.parameters().begin(), model.parameters().end());
    for (const std::size_t input : {0u, 1u, 2u, 3u}) weights[input * 3] = 0;
    model.set_parameters(weights);
    model.fit(x, y, epochs(5), batch_size(2), verbose::off);
    for (const float w : model.parameters()) CHECK(std::isfinite(w));
  };
  check(precision::f32{});
  check(precision::mixed_bf16{});
}

TEST_CASE("settings of adafactor that make no sense") {
  const auto complaint = [](const adafactor& o) { return error_of([&] { o.validate(); }); };
  CHECK(complaint(adafactor{}) == "no error");
  CHECK(complaint({.beta_2_decay = 0.5}) == "adafactor: beta_2_decay = 0.5 must be at least -10 and below 0");
  CHECK(complaint({.epsilon_1 = 0}) == "adafactor: epsilon_1 = 0 must be greater than 0 and finite");
  CHECK(complaint({.epsilon_2 = -1}) == "adafactor: epsilon_2 = -1 must be at least 0 and finite");
  CHECK(complaint({.clip_threshold = 0}) == "adafactor: clip_threshold = 0 must be greater than 0 and finite");
}
