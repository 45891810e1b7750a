// All optimizers at the extremes of float: gradients and weights that are zero, denormal, tiny and huge, side by side in one
// parameter. Where the same steps in double stay within the range of float, those in float are close to them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <strata/base/arena.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>
#include <type_traits>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

constexpr long rows = 4, columns = 5, place = 32, size = 2 * place;
/// A matrix, and a vector with equally many elements.
const std::vector<parameter_range> parameters{
    {.begin = 0, .end = place, .elements = rows * columns, .rows = rows, .columns = columns},
    {.begin = place, .end = size, .elements = rows * columns}};

/// Gradients and weights of the elements. The first row and the first column of the matrix have no gradient.
struct extremes {
  double gradient, next_gradient, weight;

  double gradient_of(long i, long step) const {
    if (i % place >= rows * columns || i / columns == 0 || i % columns == 0) return 0;
    return ((i + step) % 3 ? gradient : next_gradient) * (i % 2 ? 1 : -1);
  }
  double weight_of(long i) const { return i % place >= rows * columns ? 0 : i % 4 == 0 ? 0 : i % 4 == 1 ? 0.5 : weight; }
};

/// The weights, then the slots, after some steps in type T.
template <class T, class O>
std::vector<T> after(const O& o, const extremes& of, int steps) {
  arena<T> weights{std::size_t(size)}, slots{std::size_t(size * (o.slots() + 1))}, leaf{std::size_t(size)};
  arena<double> norms{std::size_t(weight_update<T, O>::norm_count(parameters))};
  T *slot[8] = {}, *const leaves[] = {leaf.data()};
  for (int k = 0; k < o.slots(); ++k) slot[k] = slots.data() + k * size;
  for (long i = 0; i < size; ++i) weights[std::size_t(i)] = T(of.weight_of(i));
  for (long t = 0; t < steps; ++t) {
    for (long i = 0; i < size; ++i) leaf[std::size_t(i)] = T(of.gradient_of(i, t));
    const double rate = o.learning_rate(t);
    const weight_update<T, O> update{o, rate, parameters, weights.data(), slot, norms.data()};
    o.template with_rule<T>(t, rate,
                            [&](const auto& rule) { update.run(rule, reduced(leaves, 1, 1), [](auto&& f) { f(0L, size); }); });
  }
  std::vector<T> all(weights.data(), weights.data() + size);
  all.insert(all.end(), slots.data(), slots.data() + size * o.slots());
  return all;
}

constexpr double largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();

template <class O>
void check(const O& o) {
  for (const double gradient : {0., smallest, 1e-39, 1e-30, 1e-12, 1., 1e18, largest})
    for (const double next : {0., 1e-39, 1e-30, 1e-3, -1e18, largest})
      for (const double weight : {0., smallest, 1e-30, 1e18, largest}) {
        const extremes of{gradient, next, weight};
        const auto is_denormal = [](double g) { return 0 < g && g < double(std::numeric_limits<float>::min()); };
        const bool is_comparable = !is_denormal(gradient) && !is_denormal(next) && weight < largest;
        bool in_range[] = {true, true};
        std::vector<double> reach(std::size_t(size), 1e-27);  // for each element, the largest value or change so far
        for (const int steps : {1, 2, 3}) {
          const std::vector<double> expected = after<double>(o, of, steps);
          const std::vector<float> got = after<float>(o, of, steps);
          bool is_finite[] = {true, true}, is_close[] = {true, true};
          for (std::size_t i = 0; i < expected.size(); ++i) {
            const double e = expected[i], f = got[i];
            const std::size_t p = i / place % 2;
            in_range[p] = in_range[p] && std::abs(e) <= largest;
            is_finite[p] = is_finite[p] && std::isfinite(f);
            if (i >= reach.size()) continue;  // a slot
            reach[i] = std::max({reach[i], std::abs(e), std::abs(e - of.weight_of(long(i)))});
            is_close[p] = is_close[p] && (!is_comparable || std::abs(e - f) <= 1e-3 * reach[i]);
          }
          INFO(O::name);
          CAPTURE(gradient);
          CAPTURE(next);
          CAPTURE(weight);
          CAPTURE(steps);
          for (const std::size_t p : {0u, 1u}) {
            CAPTURE(p);
            if (in_range[p])
              CHECK((is_finite[p] && is_close[p]));
            else
              CHECK((!is_finite[p] || is_close[p]));  // an overflow must be visible
          }
        }
      }
}

}  // namespace

TEST_CASE("zero, tiny and huge gradients and weights") {
  check(sgd{});
  check(sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
  check(rmsprop{});
  check(rmsprop{.momentum = 0.5, .centered = true});
  check(adam{});
  check(adam{.amsgrad = true});
  check(adamw{});
  check(nadam{});
  check(adamax{});
  check(adagrad{});
  check(adadelta{});
  check(lion{});
  check(ftrl{});
  check(ftrl{.learning_rate_power = -0.3});
  check(lamb{});
  check(adafactor{});
  check(ema{adafactor{}, 0.9});
}

TEST_CASE("with clipping") {
  check(sgd{.clipnorm = 1});
  check(adam{.global_clipnorm = 1});
  check(adafactor{.clipvalue = 1});
}

TEST_CASE("a gradient that stays the same has no variance: rounding makes it negative") {
  rmsprop{.centered = true}.with_rule<float>(0, 1e-3, [](const auto& rule) {
    if constexpr (std::remove_cvref_t<decltype(rule)>::slots == 2)
      for (int k = 1; k <= 40; ++k) {
        float w = 0, v = 0, a = 0;
        for (int t = 0; t < 400; ++t) rule(w, reduced(local_gradient<float>{0.37f * float(k)}, 1), v, a);
        CAPTURE(k);
        CHECK(std::isfinite(w));
      }
  });
}

TEST_CASE("a norm that is infinite makes the step of every element nan, not 0") {
  lamb{}.with_rule<float>(0, 1e-3, [](const auto& rule) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    CHECK(std::isnan(rule.scale(parameter_norms{.weights = 1, .direction = infinite})));
    CHECK(std::isnan(rule.scale(parameter_norms{.weights = infinite, .direction = 1})));
  });
}

TEST_CASE("a moment that has overflowed makes the weight nan, not one that never changes again") {
  rmsprop{}.with_rule<float>(0, 1e-3, [](const auto& rule) {
    if constexpr (std::remove_cvref_t<decltype(rule)>::slots == 1) {
      float w = 0, v = 0;
      rule(w, reduced(local_gradient<float>{1e20f}, 1), v);
      CHECK(std::isnan(w));
    }
  });
}
