// Optimizers: each against the textbook written out for one number, and the loop that applies them to arenas.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/cpu/update.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/schedules.hpp>
#include <strata/optimizers/sgd.hpp>
#include <string>
#include <type_traits>
#include <vector>

using namespace strata;

namespace {

using numbers = std::vector<double>;

/// Arenas of two parameters, the second with a penalty, and leaf gradients that differ from step to step.
template <class T>
struct small_model {
  static constexpr long first = 1520, size = 3600;
  static constexpr penalty regularizer{0.03, 0.02};
  std::vector<parameter_range> ranges{{0, first}, {first, size, regularizer}};
  arena<T> weights{std::size_t(size)}, slots{std::size_t(3 * size)};
  std::vector<arena<T>> leaves;
  arena<double> norms;

  explicit small_model(int leaf_count, bool regularized = false) {
    if (!regularized) ranges[1].regularizer = {};
    for (int l = 0; l < leaf_count; ++l) leaves.emplace_back(std::size_t(size));
    for (long i = 0; i < size; ++i) weights[std::size_t(i)] = T(philox{1}.uniform(std::uint64_t(i)) - 0.5);
    norms = arena<double>(std::size_t(weight_update<T, sgd>::piece_count(ranges)));
  }
  void fill_leaves(long step) {
    for (std::size_t l = 0; l < leaves.size(); ++l)
      for (std::size_t i = 0; i < std::size_t(size); ++i) leaves[l][i] = T(philox{10 + l}.uniform(i, std::uint64_t(step)) - 0.4);
  }

  /// As `ranks` threads would do it, one after another.
  template <class O>
  void step(const O& o, long number, T scale, int ranks = 1) {
    fill_leaves(number);
    T* slot[3] = {slots.data(), slots.data() + size, slots.data() + 2 * size};
    T* leaf[max_leaves] = {};
    for (std::size_t l = 0; l < leaves.size(); ++l) leaf[l] = leaves[l].data();
    const double rate = o.learning_rate(number);
    const weight_update<T, O> update{o, rate, scale, ranges, weights.data(), slot, leaf, int(leaves.size()), norms.data()};
    o.template with_rule<T>(number, rate, [&](const auto& rule) {
      REQUIRE(std::remove_cvref_t<decltype(rule)>::slots == o.slots());
      if (update.clips_by_norm())
        for (int r = 0; r < ranks; ++r) update.reduce(slice_begin(size, r, ranks), slice_begin(size, r + 1, ranks));
      for (int r = 0; r < ranks; ++r) update.apply(rule, slice_begin(size, r, ranks), slice_begin(size, r + 1, ranks));
    });
  }
};

/// The same steps in double, one number at a time: `rule(w, g, slots, step, rate)` is the textbook's.
template <class O, class Rule>
numbers expected_weights(const O& o, int leaf_count, bool regularized, int steps, double scale, Rule rule) {
  small_model<double> m(leaf_count, regularized);
  const std::size_t size = std::size_t(m.size), first = std::size_t(m.first);
  numbers w(m.weights.data(), m.weights.data() + size);
  std::vector<std::array<double, 3>> slots(size);
  for (int t = 0; t < steps; ++t) {
    m.fill_leaves(t);
    const double rate = o.learning_rate(t);
    numbers g(size), norm(2);
    for (std::size_t i = 0; i < size; ++i) {
      for (const auto& leaf : m.leaves) g[i] += leaf[i] * scale;
      const penalty p = m.ranges[i < first ? 0 : 1].regularizer;
      g[i] += p.l1 * (w[i] > 0 ? 1 : -1) + 2 * p.l2 * w[i];
      norm[i < first ? 0 : 1] += g[i] * g[i];
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (o.clipnorm > 0) g[i] *= o.clipnorm / std::max(o.clipnorm, std::sqrt(norm[i < first ? 0 : 1]));
      if (o.global_clipnorm > 0) g[i] *= o.global_clipnorm / std::max(o.global_clipnorm, std::sqrt(norm[0] + norm[1]));
      if (o.clipvalue > 0) g[i] = std::clamp(g[i], -o.clipvalue, o.clipvalue);
      w[i] -= w[i] * o.weight_decay * rate;
      rule(w[i], g[i], slots[i], t, rate);
    }
  }
  return w;
}

template <class O, class Rule>
void check(const O& o, Rule rule, int leaf_count = 4, bool regularized = false) {
  constexpr int steps = 6;
  constexpr double scale = 1 / 3.;
  const numbers expected = expected_weights(o, leaf_count, regularized, steps, scale, rule);
  const auto worst = [&]<class T>(T) {
    small_model<T> m(leaf_count, regularized);
    for (int t = 0; t < steps; ++t) m.step(o, t, T(scale));
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(double(m.weights[i]) - expected[i]));
    return worst;
  };
  CHECK(worst(double{}) < 1e-12);
  CHECK(worst(float{}) < 1e-5);
}

using slots_of_one = std::array<double, 3>;

auto sgd_textbook(double momentum, bool nesterov) {
  return [=](double& w, double g, slots_of_one& s, int, double rate) {
    s[0] = momentum * s[0] - rate * g;
    w += nesterov ? momentum * s[0] - rate * g : s[0];
  };
}
auto rmsprop_textbook(double rho, double momentum, bool centered, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int, double rate) {
    s[0] = rho * s[0] + (1 - rho) * g * g;
    s[1] = rho * s[1] + (1 - rho) * g;
    s[2] = momentum * s[2] + rate * g / std::sqrt(s[0] - (centered ? s[1] * s[1] : 0) + epsilon);
    w -= s[2];
  };
}
auto adam_textbook(double beta_1, double beta_2, bool amsgrad, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int step, double rate) {
    s[0] = beta_1 * s[0] + (1 - beta_1) * g;
    s[1] = beta_2 * s[1] + (1 - beta_2) * g * g;
    s[2] = std::max(s[2], s[1]);
    const double correction = std::sqrt(1 - std::pow(beta_2, step + 1)) / (1 - std::pow(beta_1, step + 1));
    w -= rate * correction * s[0] / (std::sqrt(amsgrad ? s[2] : s[1]) + epsilon);
  };
}

template <class O>
std::string complaint(const O& o) {
  try {
    o.validate();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("sgd") {
  check(sgd{}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1, .momentum = 0.9}, sgd_textbook(0.9, false));
  check(sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}, sgd_textbook(0.9, true));
  check(sgd{.learning_rate = exponential_decay{0.1, 3, 0.5}, .momentum = 0.9}, sgd_textbook(0.9, false));
}

TEST_CASE("rmsprop") {
  check(rmsprop{}, rmsprop_textbook(0.9, 0, false, 1e-7));
  check(rmsprop{.learning_rate = 0.01, .rho = 0.7, .epsilon = 1e-3}, rmsprop_textbook(0.7, 0, false, 1e-3));
  check(rmsprop{.momentum = 0.8}, rmsprop_textbook(0.9, 0.8, false, 1e-7));
  check(rmsprop{.epsilon = 1e-3, .centered = true}, rmsprop_textbook(0.9, 0, true, 1e-3));
  check(rmsprop{.momentum = 0.8, .epsilon = 1e-3, .centered = true}, rmsprop_textbook(0.9, 0.8, true, 1e-3));
}

TEST_CASE("adam") {
  check(adam{}, adam_textbook(0.9, 0.999, false, 1e-7));
  check(adam{.learning_rate = 0.01, .beta_1 = 0.5, .beta_2 = 0.9, .epsilon = 1e-3}, adam_textbook(0.5, 0.9, false, 1e-3));
  check(adam{.beta_2 = 0.5, .amsgrad = true}, adam_textbook(0.9, 0.5, true, 1e-7));
  check(adamw{}, adam_textbook(0.9, 0.999, false, 1e-7));
  CHECK(adamw{}.weight_decay == 0.004);
  CHECK(adam{}.weight_decay == 0);
}

TEST_CASE("clipping, weight decay and penalties come before the rule") {
  check(sgd{.learning_rate = 0.1, .weight_decay = 0.3}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1, .clipvalue = 0.05}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1, .clipnorm = 0.5}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1, .clipnorm = 1e6}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1, .global_clipnorm = 0.5}, sgd_textbook(0, false));
  check(sgd{.learning_rate = 0.1}, sgd_textbook(0, false), 4, true);
  check(sgd{.learning_rate = 0.1, .momentum = 0.5, .clipvalue = 0.05}, sgd_textbook(0.5, false), 1, true);
  check(adamw{.weight_decay = 0.1, .clipnorm = 0.5}, adam_textbook(0.9, 0.999, false, 1e-7), 2, true);
  check(adamw{.weight_decay = 0.1, .global_clipnorm = 0.5}, adam_textbook(0.9, 0.999, false, 1e-7), 4, true);
}

TEST_CASE("any number of leaves") {
  for (int leaves : {1, 2, 3, 4, 7, 8, 16}) check(sgd{.learning_rate = 0.1}, sgd_textbook(0, false), leaves);
}

TEST_CASE("leaves are added in a tree") {
  // Only this order yields 1: the large numbers meet each other before the small ones.
  const float of_leaf[] = {1e8f, -1e8f, 0.5f, 0.5f};
  std::vector<arena<float>> leaves;
  const float* pointers[4];
  for (int l = 0; l < 4; ++l) {
    leaves.emplace_back(16);
    std::ranges::fill(leaves.back().span(), of_leaf[l]);
  }
  for (std::size_t l = 0; l < 4; ++l) pointers[l] = leaves[l].data();
  arena<float> sum(16);
  sum_leaves(sum.data(), pointers, 4, 0, 16);
  for (float v : sum.span()) CHECK(v == 1);
  std::swap(pointers[1], pointers[2]);
  sum_leaves(sum.data(), pointers, 4, 0, 16);
  for (float v : sum.span()) CHECK(v == 0);
}

TEST_CASE_TEMPLATE("bits do not depend on the number of threads", T, float, double) {
  const auto after = [](const auto& o, int ranks) {
    small_model<T> m(4, true);
    for (int t = 0; t < 5; ++t) m.step(o, t, T(1) / 7, ranks);
    return std::vector<T>(m.weights.data(), m.weights.data() + m.size);
  };
  for (int ranks : {2, 3, 4, 9}) {
    CHECK(after(adam{.clipnorm = 0.5}, ranks) == after(adam{.clipnorm = 0.5}, 1));
    CHECK(after(adamw{.global_clipnorm = 0.5}, ranks) == after(adamw{.global_clipnorm = 0.5}, 1));
    CHECK(after(rmsprop{.momentum = 0.5, .clipvalue = 0.1}, ranks) == after(rmsprop{.momentum = 0.5, .clipvalue = 0.1}, 1));
  }
}

TEST_CASE("bits do not depend on compiler, flags or vector width") {
  // The value is that of g++ 12 and clang 14 with SSE2, AVX2 and AVX-512, with and without FMA, from -O0 to -O3.
  std::uint64_t hash = 14695981039346656037u;
  const auto run = [&](const auto& o) {
    small_model<float> m(4, true);
    for (int t = 0; t < 4; ++t) m.step(o, t, 1.f / 7);
    for (float w : m.weights.span()) {
      REQUIRE(std::isfinite(w));
      hash = (hash ^ std::bit_cast<std::uint32_t>(w)) * 1099511628211u;
    }
  };
  run(sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01, .clipnorm = 0.5});
  run(rmsprop{.learning_rate = 0.01, .momentum = 0.5, .epsilon = 1e-3, .centered = true, .clipvalue = 0.1});
  CHECK(hash == 17976327791099493687u);
}

TEST_CASE("slices cover the arena and end with a piece") {
  for (long size : {16L, 1024L, 5008L, 100'000L})
    for (int ranks : {1, 2, 5, 64}) {
      CHECK(slice_begin(size, 0, ranks) == 0);
      CHECK(slice_begin(size, ranks, ranks) == size);
      for (int r = 0; r < ranks; ++r) {
        CHECK(slice_begin(size, r, ranks) <= slice_begin(size, r + 1, ranks));
        CHECK((slice_begin(size, r, ranks) % norm_piece == 0 || slice_begin(size, r, ranks) == size));
      }
    }
}

TEST_CASE("penalty of weights") {
  const small_model<float> m(1);
  double expected = 0;
  for (std::size_t i = 48; i < 2048; ++i)
    expected += 0.03 * std::abs(double(m.weights[i])) + 0.02 * double(m.weights[i]) * double(m.weights[i]);
  const auto penalty_of = [&](penalty p) { return weight_update<float, sgd>::penalty_of(p, m.weights.data(), 48, 2048); };
  CHECK(penalty_of({0.03, 0.02}) == doctest::Approx(expected).epsilon(1e-12));
  CHECK(penalty_of({}) == 0);
}

TEST_CASE("a gradient that is not finite is not hidden by clipping") {
  CHECK(std::isnan(global_clipnorm_factor(not_a_number, 1)));
  CHECK(std::isnan(global_clipnorm_factor(std::numeric_limits<double>::infinity(), 1)));
  CHECK(std::isnan(clipnorm_factor(not_a_number, 1)));
  CHECK(global_clipnorm_factor(0, 1) == 1);
  CHECK(clipnorm_factor(16, 2) == 0.5);
  CHECK(clipnorm_factor(4, 2) == 1);
}

TEST_CASE("hyper-parameters that make no sense are refused by name and value") {
  CHECK(complaint(sgd{}).empty());
  CHECK(complaint(adam{}).empty());
  CHECK(complaint(adamw{}).empty());
  CHECK(complaint(rmsprop{}).empty());
  CHECK(complaint(sgd{.momentum = 1}).empty());
  CHECK(complaint(adam{.learning_rate = 0}).empty());

  CHECK(complaint(adam{.learning_rate = -0.001}) == "adam: learning_rate = -0.001 must be at least 0 and finite");
  CHECK(complaint(sgd{.learning_rate = not_a_number}).find("sgd: learning_rate = ") == 0);
  CHECK(complaint(adam{.beta_1 = 1}) == "adam: beta_1 = 1 must be at least 0 and below 1");
  CHECK(complaint(adamw{.beta_2 = -0.1}) == "adamw: beta_2 = -0.1 must be at least 0 and below 1");
  CHECK(complaint(adam{.epsilon = 0}) == "adam: epsilon = 0 must be greater than 0 and finite");
  CHECK(complaint(sgd{.momentum = 1.5}) == "sgd: momentum = 1.5 must be at least 0 and at most 1");
  CHECK(complaint(rmsprop{.rho = 2}) == "rmsprop: rho = 2 must be at least 0 and below 1");
  CHECK(complaint(rmsprop{.momentum = -1}) == "rmsprop: momentum = -1 must be at least 0 and finite");
  CHECK(complaint(adamw{.weight_decay = -1}) == "adamw: weight_decay = -1 must be at least 0 and finite");
  CHECK(complaint(adam{.clipvalue = -1}) == "adam: clipvalue = -1 must be at least 0 and finite");
  CHECK(complaint(adam{.clipnorm = 1, .global_clipnorm = 1}) ==
        "adam: only one of clipnorm, clipvalue and global_clipnorm can be set");
}
