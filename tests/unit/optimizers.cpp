// Optimizers: each against the textbook's formula for one element, and the loop that applies them to arenas.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/random.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/network/leaves.hpp>
#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/schedules.hpp>
#include <strata/optimizers/sgd.hpp>
#include <string>
#include <tools/reduced.hpp>
#include <type_traits>
#include <vector>

#include "larger.hpp"

using namespace strata;
using namespace strata::core;

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
    norms = arena<double>(std::size_t(weight_update<T, sgd>::norm_count(ranges)));
  }
  void fill_leaves(long step) {
    for (std::size_t l = 0; l < leaves.size(); ++l)
      for (std::size_t i = 0; i < std::size_t(size); ++i) leaves[l][i] = T(philox{10 + l}.uniform(i, std::uint64_t(step)) - 0.4);
  }

  /// Computes the update as `ranks` threads would, one after another.
  template <class O>
  void step(const O& o, long number, int samples, int ranks = 1) {
    fill_leaves(number);
    T* slot[3] = {slots.data(), slots.data() + size, slots.data() + 2 * size};
    T* leaf[max_leaves] = {};
    for (std::size_t l = 0; l < leaves.size(); ++l) leaf[l] = leaves[l].data();
    const double rate = o.learning_rate(number);
    const weight_update<T, O> update{o, rate, ranges, weights.data(), slot, norms.data()};
    const auto gradient = reduced(leaf, int(leaves.size()), samples);
    o.template with_rule<T>(number, rate, [&](const auto& rule) {
      REQUIRE(std::remove_cvref_t<decltype(rule)>::slots == o.slots());
      update.run(rule, gradient, [&](auto&& f) {
        for (int r = 0; r < ranks; ++r) {
          const element_range slice = slice_of({0, size}, r, ranks);
          f(slice.begin, slice.end);
        }
      });
    });
  }
};

struct no_second_pass {
  void operator()(numbers&, const numbers&, double) const {}
};

/// The same steps in double, one element at a time. `rule(w, g, slots, step, rate)` is the textbook's formula. For rules with
/// norms, `second(weights, directions, rate)` updates one parameter, and `rule` stores the direction in slots[2].
template <class O, class Rule, class Second = no_second_pass>
numbers expected_weights(const O& o, int leaf_count, bool regularized, int steps, double scale, Rule rule, Second second = {}) {
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
    for (const auto& [begin, end] : {std::pair{std::size_t(0), first}, std::pair{first, size}}) {
      numbers part(&w[begin], &w[begin] + (end - begin)), directions;
      for (std::size_t i = begin; i < end; ++i) directions.push_back(slots[i][2]);
      second(part, directions, rate);
      std::ranges::copy(part, &w[begin]);
    }
  }
  return w;
}

template <class O, class Rule, class Second = no_second_pass>
void check(const O& o, Rule rule, int leaf_count = 4, bool regularized = false, Second second = {}) {
  constexpr int steps = 6;
  constexpr double scale = 1 / 3.;
  const numbers expected = expected_weights(o, leaf_count, regularized, steps, scale, rule, second);
  const auto worst = [&]<class T>(T) {
    small_model<T> m(leaf_count, regularized);
    for (int t = 0; t < steps; ++t) m.step(o, t, 3);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) worst = test::larger(worst, std::abs(double(m.weights[i]) - expected[i]));
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

auto nadam_textbook(double beta_1, double beta_2, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int step, double rate) {
    s[0] = beta_1 * s[0] + (1 - beta_1) * g;
    s[1] = beta_2 * s[1] + (1 - beta_2) * g * g;
    const auto momentum = [=](int t) { return beta_1 * (1 - std::pow(0.96, t) / 2); };
    double product = 1;
    for (int t = 1; t <= step + 1; ++t) product *= momentum(t);
    const double next = momentum(step + 2);
    const double m = next * s[0] / (1 - product * next) + (1 - momentum(step + 1)) * g / (1 - product);
    w -= rate * m / (std::sqrt(s[1] / (1 - std::pow(beta_2, step + 1))) + epsilon);
  };
}
auto adamax_textbook(double beta_1, double beta_2, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int step, double rate) {
    s[0] = beta_1 * s[0] + (1 - beta_1) * g;
    s[1] = std::max(beta_2 * s[1], std::abs(g));
    w -= rate / (1 - std::pow(beta_1, step + 1)) * s[0] / (s[1] + epsilon);
  };
}
auto adagrad_textbook(double initial, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int step, double rate) {
    if (step == 0) s[0] = initial;
    s[0] += g * g;
    w -= rate * g / std::sqrt(s[0] + epsilon);
  };
}
auto adadelta_textbook(double rho, double epsilon) {
  return [=](double& w, double g, slots_of_one& s, int, double rate) {
    s[0] = rho * s[0] + (1 - rho) * g * g;
    const double d = g * std::sqrt(s[1] + epsilon) / std::sqrt(s[0] + epsilon);
    s[1] = rho * s[1] + (1 - rho) * d * d;
    w -= rate * d;
  };
}
auto lion_textbook(double beta_1, double beta_2) {
  return [=](double& w, double g, slots_of_one& s, int, double rate) {
    w -= std::copysign(rate, beta_1 * s[0] + (1 - beta_1) * g);
    s[0] = beta_2 * s[0] + (1 - beta_2) * g;
  };
}
auto ftrl_textbook(const ftrl& o) {
  return [=](double& w, double g, slots_of_one& s, int step, double rate) {
    if (step == 0) s[0] = o.initial_accumulator_value;
    const double before = std::pow(s[0], -o.learning_rate_power), after = std::pow(s[0] += g * g, -o.learning_rate_power);
    s[1] += g + 2 * o.l2_shrinkage_regularization_strength * w - (after - before) / rate * w;
    const double l1 = o.l1_regularization_strength, l2 = o.l2_regularization_strength + o.beta / (2 * rate);
    w = (std::clamp(s[1], -l1, l1) - s[1]) / (after / rate + 2 * l2);
  };
}

auto lamb_textbook(double beta_1, double beta_2, double epsilon) {
  return [=](double&, double g, slots_of_one& s, int step, double) {
    s[0] = beta_1 * s[0] + (1 - beta_1) * g;
    s[1] = beta_2 * s[1] + (1 - beta_2) * g * g;
    s[2] = s[0] / (1 - std::pow(beta_1, step + 1)) / (std::sqrt(s[1] / (1 - std::pow(beta_2, step + 1))) + epsilon);
  };
}
/// w -= rate * ||w|| / ||d|| * d
void trusted_step(numbers& w, const numbers& d, double rate) {
  const auto norm = [](const numbers& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); };
  const double ratio = norm(w) > 0 && norm(d) > 0 ? norm(w) / norm(d) : 1;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * d[i];
}

/// LARS (You et al. 2017), written as a user would: its momentum is in the second pass.
/// v = momentum * v + rate * trust * ||w|| / ||g|| * g;  w -= v
template <class T>
struct lars_rule {
  static constexpr int slots = 1;
  double rate, trust;
  T momentum;
  template <class V>
  V propose(const V&, reduced_gradient<V> gradient, V&) const {
    return gradient.value();
  }
  T scale(const parameter_norms& norm) const { return T(rate * trust * norm.weights / norm.direction); }
  template <class V>
  void apply(V& w, const V& direction, T scale, V& velocity) const {
    velocity = detail::product(velocity, momentum) + detail::product(direction, scale);
    w -= velocity;
  }
};
struct lars {
  static constexpr auto name = "lars";
  learning_rate_schedule learning_rate = 0.1;
  double momentum = 0.9, trust = 0.1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  int slots() const { return 1; }
  bool needs_norms() const { return true; }
  void validate() const {}
  template <class T>
  void with_rule(long, double rate, auto&& f) const {
    f(lars_rule<T>{rate, trust, T(momentum)});
  }
};
static_assert(optimizer<lars> && parameterwise_rule<lars_rule<float>, float>);

template <class O>
std::string complaint(const O& o) {
  try {
    o.validate();
  } catch (const strata_error& e) {
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

TEST_CASE("nadam") {
  check(nadam{}, nadam_textbook(0.9, 0.999, 1e-7));
  check(nadam{.learning_rate = 0.01, .beta_1 = 0.5, .beta_2 = 0.9, .epsilon = 1e-3}, nadam_textbook(0.5, 0.9, 1e-3));
  check(nadam{.beta_1 = 0, .weight_decay = 0.1, .clipnorm = 0.5}, nadam_textbook(0, 0.999, 1e-7), 2, true);
}

TEST_CASE("late steps of nadam: the product of all its betas") {
  for (const long step : {0L, 1L, 10L, 300L, 999L, 1000L, 1001L, 5000L}) {
    double product = 1, next = 0, now = 0;
    for (long t = 1; t <= step + 2; ++t) {
      now = next;
      next = 0.9999 * (1 - std::pow(0.96, double(t)) / 2);
      if (t <= step + 1) product *= next;
    }
    const double expected = next / (1 - product * next) + (1 - now) / (1 - product);
    nadam{.beta_1 = 0.9999}.with_rule<double>(
        step, 1, [&](const auto& rule) { CHECK(rule.of_m + rule.of_g == doctest::Approx(expected).epsilon(1e-12)); });
  }
}

TEST_CASE("adamax") {
  check(adamax{}, adamax_textbook(0.9, 0.999, 1e-7));
  check(adamax{.learning_rate = 0.01, .beta_1 = 0.5, .beta_2 = 0.7, .epsilon = 1e-3}, adamax_textbook(0.5, 0.7, 1e-3));
  check(adamax{.clipvalue = 0.05}, adamax_textbook(0.9, 0.999, 1e-7), 1, true);
}

TEST_CASE("adagrad") {
  check(adagrad{}, adagrad_textbook(0.1, 1e-7));
  check(adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0, .epsilon = 1e-3}, adagrad_textbook(0, 1e-3));
  check(adagrad{.learning_rate = 0.1, .weight_decay = 0.3}, adagrad_textbook(0.1, 1e-7), 4, true);
}

TEST_CASE("adadelta") {
  check(adadelta{}, adadelta_textbook(0.95, 1e-7));
  check(adadelta{.learning_rate = 1, .rho = 0.5, .epsilon = 1e-3}, adadelta_textbook(0.5, 1e-3));
  check(adadelta{.learning_rate = 1, .global_clipnorm = 0.5}, adadelta_textbook(0.95, 1e-7), 4, true);
}

TEST_CASE("lion") {
  check(lion{}, lion_textbook(0.9, 0.99));
  check(lion{.learning_rate = 0.01, .beta_1 = 0.5, .beta_2 = 0.7, .weight_decay = 0.1}, lion_textbook(0.5, 0.7), 4, true);
  lion{}.with_rule<double>(0, 0.1, [](const auto& rule) {
    double w = 1, m = 0;
    rule(w, reduced(local_gradient<double>{0}, 1), m);
    CHECK(w == 1);  // without a gradient there is no direction
    rule(w, reduced(local_gradient<double>{not_a_number}, 1), m);
    CHECK(std::isnan(w));
  });
}

TEST_CASE("ftrl") {
  const auto check_ftrl = [](const ftrl& o, int leaves = 4, bool regularized = false) {
    check(o, ftrl_textbook(o), leaves, regularized);
  };
  check_ftrl({});
  check_ftrl({.learning_rate = 0.1, .initial_accumulator_value = 0, .beta = 1});
  check_ftrl({.learning_rate = 0.1, .l1_regularization_strength = 0.1, .l2_regularization_strength = 0.2});
  check_ftrl({.learning_rate = 0.1, .l2_shrinkage_regularization_strength = 0.3, .weight_decay = 0.1, .clipnorm = 0.5}, 2, true);
  check_ftrl({.learning_rate = 0.1, .learning_rate_power = -0.25});
  check_ftrl({.learning_rate = 0.1, .learning_rate_power = 0});
  check_ftrl({.learning_rate = 0.1, .learning_rate_power = -1, .initial_accumulator_value = 1, .clipvalue = 0.1}, 4, true);
  // Enough l1 makes weights exactly zero; a learning rate of 0 changes nothing.
  small_model<float> m(1);
  const std::vector<float> before(m.weights.data(), m.weights.data() + m.size);
  m.step(ftrl{.learning_rate = 0}, 0, 1);
  CHECK(std::equal(before.begin(), before.end(), m.weights.data()));
  m.step(ftrl{.l1_regularization_strength = 1e6}, 1, 1);
  CHECK(std::all_of(m.weights.data(), m.weights.data() + m.size, [](float w) { return w == 0; }));
}

TEST_CASE("lamb") {
  const auto usual = lamb_textbook(0.9, 0.999, 1e-7);
  check(lamb{}, usual, 4, false, trusted_step);
  check(lamb{.learning_rate = 0.1, .beta_1 = 0.5, .beta_2 = 0.9, .epsilon = 1e-3}, lamb_textbook(0.5, 0.9, 1e-3), 1, false,
        trusted_step);
  check(lamb{.learning_rate = 0.1, .weight_decay = 0.3}, usual, 2, true, trusted_step);
  check(lamb{.learning_rate = 0.1, .clipvalue = 0.05}, usual, 4, true, trusted_step);
  check(lamb{.learning_rate = 0.1, .weight_decay = 0.1, .clipnorm = 0.5}, usual, 3, true, trusted_step);
  check(lamb{.learning_rate = 0.1, .global_clipnorm = 0.5}, usual, 4, true, trusted_step);
  CHECK(takes_norms(lamb{}));
  CHECK(!takes_norms(adam{}));
  CHECK(takes_norms(adam{.global_clipnorm = 1}));
}

TEST_CASE("a rule with norms that keeps its momentum in the second pass") {
  check(
      lars{.momentum = 0}, [](double&, double g, slots_of_one& s, int, double) { s[2] = g; }, 4, true,
      [](numbers& w, const numbers& g, double rate) { trusted_step(w, g, rate * 0.1); });
  // Three equal steps: with momentum m, the last one is (1 + m + m^2) times as long as the first, but for the norm of weights.
  small_model<double> m(1);
  m.fill_leaves(0);
  double *slot[1] = {m.slots.data()}, *leaf[1] = {};
  const lars o{.learning_rate = 1e-9, .momentum = 0.5};
  const double start = m.weights[7];
  const weight_update<double, lars> update{o, 1e-9, m.ranges, m.weights.data(), slot, m.norms.data()};
  double first = 0;
  for (int t = 0; t < 3; ++t) {
    m.fill_leaves(0);
    leaf[0] = m.leaves[0].data();
    o.with_rule<double>(t, 1e-9,
                        [&](const auto& rule) { update.run(rule, reduced(leaf, 1, 1), [&](auto&& f) { f(0, m.size); }); });
    if (t == 0) first = m.weights[7] - start;
  }
  CHECK(m.weights[7] - start == doctest::Approx(first * (1 + 1.5 + 1.75)).epsilon(1e-6));
}

TEST_CASE_TEMPLATE("the trust ratio of lamb is 1 where a norm is 0", T, float, double) {
  const auto rule_at = [](const auto& check) { lamb{.learning_rate = 0.5}.with_rule<T>(0, 0.5, check); };
  rule_at([](const auto& rule) {
    CHECK(rule.scale({0, 3}) == T(0.5));
    CHECK(rule.scale({3, 0}) == T(0.5));
    CHECK(rule.scale({3, 2}) == T(0.75));
  });
  // Weights that start at zero, such as biases, move; a parameter without a gradient stays.
  small_model<T> m(1);
  std::fill_n(m.weights.data(), m.first, T{});
  m.fill_leaves(0);
  T* slot[2] = {m.slots.data(), m.slots.data() + m.size};
  T* leaf[1] = {m.leaves[0].data()};
  std::fill(leaf[0] + m.first, leaf[0] + m.size, T{});
  const std::vector<T> before(m.weights.data(), m.weights.data() + m.size);
  const lamb o{.learning_rate = 0.01};
  const weight_update<T, lamb> update{o, 0.01, m.ranges, m.weights.data(), slot, m.norms.data()};
  o.with_rule<T>(0, 0.01, [&](const auto& rule) { update.run(rule, reduced(leaf, 1, 1), [&](auto&& f) { f(0, m.size); }); });
  for (long i = 0; i < m.size; ++i)
    if (i >= m.first)
      REQUIRE(m.weights[std::size_t(i)] == before[std::size_t(i)]);
    else
      REQUIRE(std::abs(std::abs(m.weights[std::size_t(i)]) - T(0.01)) < T(1e-4));  // the first step is rate * the sign of g
}

TEST_CASE_TEMPLATE("norms of a part of the arenas have the bits of the whole", T, float, double) {
  // A parameter server does this with a shard that begins at the second parameter.
  const lamb o{.learning_rate = 0.1, .clipnorm = 0.5};
  small_model<T> whole(1), part(1);
  whole.step(o, 0, 7);
  part.fill_leaves(0);
  const long begin = part.first, size = part.size - begin;
  T* slot[2] = {part.slots.data() + begin, part.slots.data() + part.size + begin};
  T* leaf[1] = {part.leaves[0].data() + begin};
  const parameter_range range{0, size};
  const weight_update<T, lamb> update{o, 0.1, {&range, 1}, part.weights.data() + begin, slot, part.norms.data(), begin};
  REQUIRE(update.norm_count({&range, 1}, begin) <= update.norm_count(part.ranges));
  o.with_rule<T>(0, 0.1, [&](const auto& rule) { update.run(rule, reduced(leaf, 1, 7), [&](auto&& f) { f(0, size); }); });
  for (long i = begin; i < part.size; ++i) REQUIRE(part.weights[std::size_t(i)] == whole.weights[std::size_t(i)]);
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
  // Only this order yields 1: the large numbers are added to each other before the small ones.
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
    for (int t = 0; t < 5; ++t) m.step(o, t, 7, ranks);
    return std::vector<T>(m.weights.data(), m.weights.data() + m.size);
  };
  for (int ranks : {2, 3, 4, 9}) {
    CHECK(after(adam{.clipnorm = 0.5}, ranks) == after(adam{.clipnorm = 0.5}, 1));
    CHECK(after(adamw{.global_clipnorm = 0.5}, ranks) == after(adamw{.global_clipnorm = 0.5}, 1));
    CHECK(after(lamb{.learning_rate = 0.1}, ranks) == after(lamb{.learning_rate = 0.1}, 1));
    CHECK(after(lamb{.clipnorm = 0.5}, ranks) == after(lamb{.clipnorm = 0.5}, 1));
    CHECK(after(nadam{.clipnorm = 0.5}, ranks) == after(nadam{.clipnorm = 0.5}, 1));
    CHECK(after(adamax{}, ranks) == after(adamax{}, 1));
    CHECK(after(adagrad{.learning_rate = 0.1}, ranks) == after(adagrad{.learning_rate = 0.1}, 1));
    CHECK(after(adadelta{.global_clipnorm = 0.5}, ranks) == after(adadelta{.global_clipnorm = 0.5}, 1));
    CHECK(after(lion{}, ranks) == after(lion{}, 1));
    CHECK(after(ftrl{.learning_rate = 0.1, .beta = 1}, ranks) == after(ftrl{.learning_rate = 0.1, .beta = 1}, 1));
    CHECK(after(ftrl{.learning_rate_power = -0.3}, ranks) == after(ftrl{.learning_rate_power = -0.3}, 1));
    CHECK(after(rmsprop{.momentum = 0.5, .clipvalue = 0.1}, ranks) == after(rmsprop{.momentum = 0.5, .clipvalue = 0.1}, 1));
  }
}

TEST_CASE("bits do not depend on compiler, flags or vector width") {
  // The values are those of g++ 12 and clang 14 with SSE2, AVX2 and AVX-512, with and without FMA, from -O0 to -O3.
  const auto hash_after = [](std::uint64_t hash, const auto& o) {
    small_model<float> m(4, true);
    for (int t = 0; t < 4; ++t) m.step(o, t, 7);
    for (float w : m.weights.span()) {
      REQUIRE(std::isfinite(w));
      hash = (hash ^ std::bit_cast<std::uint32_t>(w)) * 1099511628211u;
    }
    return hash;
  };
  constexpr std::uint64_t start = 14695981039346656037u;
  const sgd first{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01, .clipnorm = 0.5};
  const rmsprop second{.learning_rate = 0.01, .momentum = 0.5, .epsilon = 1e-3, .centered = true, .clipvalue = 0.1};
  CHECK(hash_after(hash_after(start, first), second) == 17976327791099493687u);
  std::uint64_t hash = hash_after(hash_after(start, nadam{.learning_rate = 0.1}), adamax{.learning_rate = 0.1});
  hash = hash_after(hash_after(hash, adagrad{.learning_rate = 0.1, .clipnorm = 0.5}), adadelta{.learning_rate = 1});
  const ftrl last{
      .learning_rate = 0.1, .l1_regularization_strength = 0.01, .l2_shrinkage_regularization_strength = 0.1, .beta = 1};
  CHECK(hash_after(hash_after(hash, lion{.learning_rate = 0.1, .weight_decay = 0.01}), last) == 2709570002847715499u);
  CHECK(hash_after(start, lamb{.learning_rate = 0.1, .weight_decay = 0.01, .clipnorm = 0.5}) == 14595557104844685891u);
}

TEST_CASE("slices cover the arena and end with a piece") {
  for (long size : {16L, 1024L, 5008L, 100'000L})
    for (int ranks : {1, 2, 5, 64}) {
      long end = 0;
      for (int r = 0; r < ranks; ++r) {
        const element_range slice = slice_of({0, size}, r, ranks);
        CHECK(slice.begin == end);
        CHECK(slice.begin <= slice.end);
        CHECK((slice.begin % norm_piece == 0 || slice.begin == size));
        end = slice.end;
      }
      CHECK(end == size);
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
  CHECK(std::isnan(clipnorm_factor(not_a_number, 1)));
  CHECK(std::isnan(clipnorm_factor(std::numeric_limits<double>::infinity(), 1)));
  CHECK(clipnorm_factor(0, 1) == 1);
  CHECK(clipnorm_factor(16, 2) == 0.5);
  CHECK(clipnorm_factor(4, 2) == 1);
}

TEST_CASE("hyper-parameters that make no sense are refused by name and value") {
  CHECK(complaint(sgd{}).empty());
  CHECK(complaint(adam{}).empty());
  CHECK(complaint(adamw{}).empty());
  CHECK(complaint(rmsprop{}).empty());
  CHECK(complaint(lamb{}).empty());
  CHECK(complaint(sgd{.momentum = 1}).empty());
  CHECK(complaint(adam{.learning_rate = 0}).empty());

  CHECK(complaint(adam{.learning_rate = -0.001}) == "adam: learning_rate = -0.001 must be at least 0 and finite");
  CHECK(complaint(sgd{.learning_rate = not_a_number}).find("sgd: learning_rate = ") == 0);
  CHECK(complaint(adam{.beta_1 = 1}) == "adam: beta_1 = 1 must be at least 0 and below 1");
  CHECK(complaint(adamw{.beta_2 = -0.1}) == "adamw: beta_2 = -0.1 must be at least 0 and below 1");
  CHECK(complaint(adam{.epsilon = 0}) == "adam: epsilon = 0 must be greater than 0 and finite");
  const auto out_of_range = [](const std::string& what) {
    return what + " must be from 1.2e-38 to 3.4e+38, so that it is neither 0 nor infinite as float";
  };
  CHECK(complaint(adam{.epsilon = 1e-50}) == out_of_range("adam: epsilon = 1e-50"));
  CHECK(complaint(adamw{.epsilon = 1e-39}) == out_of_range("adamw: epsilon = 1e-39"));  // a denormal
  CHECK(complaint(lamb{.epsilon = 1e-46}) == out_of_range("lamb: epsilon = 1e-46"));
  CHECK(complaint(rmsprop{.epsilon = 1e39}) == out_of_range("rmsprop: epsilon = 1e+39"));
  CHECK(complaint(adamw{.weight_decay = 1e39}) == "adamw: weight_decay = 1e+39 must be finite as float");
  CHECK(complaint(sgd{.learning_rate = 1e39}) == "sgd: learning_rate = 1e+39 must be finite as float");
  CHECK(complaint(adam{.epsilon = 1e-37}).empty());
  CHECK(complaint(adamw{.weight_decay = 3e38}).empty());
  CHECK(complaint(lamb{.beta_1 = 1}) == "lamb: beta_1 = 1 must be at least 0 and below 1");
  CHECK(complaint(lamb{.beta_2 = -0.1}) == "lamb: beta_2 = -0.1 must be at least 0 and below 1");
  CHECK(complaint(lamb{.epsilon = 0}) == "lamb: epsilon = 0 must be greater than 0 and finite");
  CHECK(complaint(lamb{.learning_rate = -1}) == "lamb: learning_rate = -1 must be at least 0 and finite");
  CHECK(complaint(lamb{.clipnorm = 1, .clipvalue = 1}) == "lamb: only one of clipnorm, clipvalue and global_clipnorm can be set");
  CHECK(complaint(sgd{.momentum = 1.5}) == "sgd: momentum = 1.5 must be at least 0 and at most 1");
  CHECK(complaint(rmsprop{.rho = 2}) == "rmsprop: rho = 2 must be at least 0 and below 1");
  CHECK(complaint(rmsprop{.momentum = -1}) == "rmsprop: momentum = -1 must be at least 0 and finite");
  CHECK(complaint(adamw{.weight_decay = -1}) == "adamw: weight_decay = -1 must be at least 0 and finite");
  CHECK(complaint(adam{.clipvalue = -1}) == "adam: clipvalue = -1 must be at least 0 and finite");
  CHECK(complaint(nadam{}).empty());
  CHECK(complaint(adamax{}).empty());
  CHECK(complaint(adagrad{}).empty());
  CHECK(complaint(adadelta{}).empty());
  CHECK(complaint(lion{}).empty());
  CHECK(complaint(ftrl{}).empty());
  CHECK(complaint(nadam{.beta_1 = 1}) == "nadam: beta_1 = 1 must be at least 0 and below 1");
  CHECK(complaint(nadam{.epsilon = 0}) == "nadam: epsilon = 0 must be greater than 0 and finite");
  CHECK(complaint(nadam{.learning_rate = -1}) == "nadam: learning_rate = -1 must be at least 0 and finite");
  CHECK(complaint(adamax{.beta_2 = -0.1}) == "adamax: beta_2 = -0.1 must be at least 0 and below 1");
  CHECK(complaint(adamax{.clipvalue = -1}) == "adamax: clipvalue = -1 must be at least 0 and finite");
  CHECK(complaint(adagrad{.initial_accumulator_value = -1}) ==
        "adagrad: initial_accumulator_value = -1 must be at least 0 and finite");
  CHECK(complaint(adagrad{.initial_accumulator_value = 0}).empty());
  CHECK(complaint(adagrad{.epsilon = 0}) == "adagrad: epsilon = 0 must be greater than 0 and finite");
  CHECK(complaint(adagrad{.weight_decay = -1}) == "adagrad: weight_decay = -1 must be at least 0 and finite");
  CHECK(complaint(adadelta{.rho = 1}) == "adadelta: rho = 1 must be at least 0 and below 1");
  CHECK(complaint(adadelta{.epsilon = 0}) == "adadelta: epsilon = 0 must be greater than 0 and finite");
  CHECK(complaint(adadelta{.clipnorm = 1, .clipvalue = 1}) ==
        "adadelta: only one of clipnorm, clipvalue and global_clipnorm can be set");
  CHECK(complaint(lion{.beta_1 = 0}) == "lion: beta_1 = 0 must be greater than 0 and at most 1");
  CHECK(complaint(lion{.beta_1 = 1}).empty());
  CHECK(complaint(lion{.beta_2 = 1}) == "lion: beta_2 = 1 must be at least 0 and below 1");
  CHECK(complaint(lion{.clipnorm = -1}) == "lion: clipnorm = -1 must be at least 0 and finite");
  CHECK(complaint(ftrl{.learning_rate_power = 0.5}) == "ftrl: learning_rate_power = 0.5 must be at most 0");
  CHECK(complaint(ftrl{.learning_rate_power = not_a_number}).find("ftrl: learning_rate_power = ") == 0);
  CHECK(complaint(ftrl{.initial_accumulator_value = -1}) == "ftrl: initial_accumulator_value = -1 must be at least 0 and finite");
  CHECK(complaint(ftrl{.initial_accumulator_value = 0}) ==
        "ftrl: initial_accumulator_value = 0 must be greater than 0, unless beta or l2_regularization_strength is");
  CHECK(complaint(ftrl{.initial_accumulator_value = 0, .beta = 1}).empty());
  CHECK(complaint(ftrl{.l1_regularization_strength = -1}) ==
        "ftrl: l1_regularization_strength = -1 must be at least 0 and finite");
  CHECK(complaint(ftrl{.l2_regularization_strength = -1}) ==
        "ftrl: l2_regularization_strength = -1 must be at least 0 and finite");
  CHECK(complaint(ftrl{.l2_shrinkage_regularization_strength = -1}) ==
        "ftrl: l2_shrinkage_regularization_strength = -1 must be at least 0 and finite");
  CHECK(complaint(ftrl{.beta = -1}) == "ftrl: beta = -1 must be at least 0 and finite");
  CHECK(complaint(adam{.clipnorm = 1, .global_clipnorm = 1}) ==
        "adam: only one of clipnorm, clipvalue and global_clipnorm can be set");
}
