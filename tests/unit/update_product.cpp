// A gradient that is handed over as its two factors makes the same weights as one that is stored.
// flags: -O2
// At -O1 g++ fuses no product with an addition, and sums that begin at 0 never become -0.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <strata/base/arena.hpp>
#include <strata/base/random.hpp>
#include <strata/cpu/engine/update.hpp>
#include <strata/cpu/products/skipped_zeros.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>
#include <vector>

using namespace strata;

namespace {

/// underflow: each sum is -0 before it loses its sign, which a velocity that is -0 would show.
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
  using epilogue = simd::of_unsigned_zeros<linear>;  // of the gradients that dense layers store
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

}  // namespace

TEST_CASE_TEMPLATE("gradients as products", T, float, double) {
  for (const int count : {1, 2, 7, 8}) {
    check<T>(adam{}, count);
    check<T>(sgd{.momentum = 0.9, .weight_decay = 0.1, .clipvalue = 0.2}, count);
    check<T>(sgd{}, count, {0.01, 0.02});
    check<T>(sgd{.momentum = 0.9}, count, {}, true);
  }
}
