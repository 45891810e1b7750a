// Some columns of the data, row by row.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/columns.hpp>

namespace strata::core {

/// x: (count, ..., C); y: (count, ..., S.count).
template <column_settings S, class P, shape In>
struct kernel<cpu, column_slice<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(const operands<T>& o) { simd::copy_rows(o.x[0] + S.first, In.last(), o.y, S.count, rows_of(o), S.count); }
  static void backward(const operands<T>& o) {
    if (!o.dx[0]) return;
    if (!o.adds_dx[0]) std::fill_n(o.dx[0], rows_of(o) * In.last(), T{});
    simd::copy_rows(o.dy, S.count, o.dx[0] + S.first, In.last(), rows_of(o), S.count, o.adds_dx[0]);
  }

 private:
  static std::ptrdiff_t rows_of(const operands<T>& o) { return std::ptrdiff_t(o.count) * (In.size() / In.last()); }
};

}  // namespace strata::core
