// The same update computed in two ways has the same bits: a gradient as its two factors, or stored; a rule on vectors, or on
// elements.
// flags: -O2
// At -O1 g++ fuses no product with an addition.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <strata/base/arena.hpp>
#include <strata/base/random.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/cpu/products/skipped_zeros.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

/// Compares both ways. underflow: each sum is -0 before its sign is removed; a velocity of -0 would reveal the sign.
template <class T, class O>
void check(const O& o, int count, penalty regularizer = {}, bool underflow = false) {
  constexpr int rows = 23, columns = 48;
  constexpr long begin = 32, size = begin + long(rows) * columns;
  CAPTURE(count);
  const parameter_range ranges[] = {{0, begin}, {begin, size, regularizer}};
  arena<T> x(std::size_t(count * rows)), dz(std::size_t(count * columns)), gradient { std::size_t(size) };
  const auto fill = [&](arena<T>& a, std::uint64_t stream, T all) {
    for (std::size_t i = 0; i < a.span().size(); ++i) a[i] = underflow ? all : T(float(philox{stream}.uniform(i) - 0.5));
  };
  constexpr T tiny = std::numeric_limits<T>::min();
  fill(x, 1, tiny), fill(dz, 2, -tiny);
  using epilogue = simd::of_unsigned_zeros<linear>;  // the epilogue of gradients that dense layers store
  simd::multiply<columns, rows, epilogue>(simd::product<T>{
      rows, x.data(), {1}, simd::one_run, 1, count, rows, dz.data(), columns, gradient.data() + begin, {columns}});
  std::vector<T> after[2];
  for (const bool as_product : {false, true}) {
    arena<T> w{std::size_t(size)}, state{std::size_t(3 * size)};
    fill(w, 3, T(1));
    if (underflow) fill(state, 0, T(-0.0));
    T *slots[3] = {state.data(), state.data() + size, state.data() + 2 * size}, *leaves[1] = {gradient.data()};
    for (int step = 0; step < 3; ++step) {
      const double rate = o.learning_rate(step);
      const weight_update<T, O> update{o, rate, ranges, w.data(), slots};
      const auto whole = reduced(leaves, 1, count);
      o.template with_rule<T>(step, rate, [&](const auto& rule) {
        if (as_product)
          update.apply_product(rule, {x.data(), dz.data(), count, rows, columns}, whole.mean(), begin);
        else
          update.apply(rule, whole, begin, size);
      });
    }
    after[as_product].assign(w.data(), w.data() + size);
    after[as_product].insert(after[as_product].end(), state.data(), state.data() + 3 * size);
  }
  CHECK(std::memcmp(after[0].data(), after[1].data(), after[0].size() * sizeof(T)) == 0);
}

/// Compares three steps of the rule on vectors, and on one element after the other.
template <class T, class O>
void check_rule(const O& o) {
  constexpr int L = simd::lanes<T>, count = 8 * L;
  CAPTURE(O::name);
  std::vector<T> gradient(count), after[2];
  for (int i = 0; i < count; ++i) gradient[std::size_t(i)] = T(philox{1}.uniform(std::uint64_t(i)) - 0.5);
  T* const leaf[] = {gradient.data()};
  const auto mean = reduced(leaf, 1, 3).mean();
  const auto run = [&](const auto& rule, auto load, auto store, int step, std::vector<T>& values) {
    constexpr int slots = std::remove_cvref_t<decltype(rule)>::slots;
    using V = decltype(load(gradient.data()));
    for (int i = 0; i < count; i += step) {
      V w = load(&values[std::size_t(i)]), state[slots + 1]{};
      for (int s = 0; s < slots; ++s) state[s] = load(&values[std::size_t((s + 1) * count + i)]);
      [&]<int... Slot>(std::integer_sequence<int, Slot...>) {
        rule(w, mean.of(load(&gradient[std::size_t(i)])), state[Slot]...);
      }(std::make_integer_sequence<int, slots>{});
      store(&values[std::size_t(i)], w);
      for (int s = 0; s < slots; ++s) store(&values[std::size_t((s + 1) * count + i)], state[s]);
    }
  };
  for (auto& values : after) values.assign(4 * count, T(0.25));
  for (int number = 0; number < 3; ++number)
    o.template with_rule<T>(number, 0.01, [&](const auto& rule) {
      run(rule, [](const T* p) { return simd::load(p); }, [](T* p, simd::vec<T> v) { simd::store(p, v); }, L, after[0]);
      run(rule, [](const T* p) { return *p; }, [](T* p, T v) { *p = v; }, 1, after[1]);
    });
  CHECK(after[0] == after[1]);
}

}  // namespace

TEST_CASE_TEMPLATE("rules of numbers and of vectors", T, float, double) {
  check_rule<T>(adam{});
  check_rule<T>(adam{.amsgrad = true});
  check_rule<T>(rmsprop{.momentum = 0.9, .centered = true});
  check_rule<T>(sgd{.momentum = 0.9, .nesterov = true});
}
TEST_CASE_TEMPLATE("gradients as products", T, float, double) {
  for (const int count : {1, 2, 7, 8}) {
    check<T>(adam{}, count);
    check<T>(sgd{.momentum = 0.9, .weight_decay = 0.1, .clipvalue = 0.2}, count);
    check<T>(sgd{}, count, {0.01, 0.02});
    check<T>(sgd{.momentum = 0.9}, count, {}, true);
  }
}
