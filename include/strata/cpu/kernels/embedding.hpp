// Embedding: rows of a table are copied and added in vectors.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/embedding.hpp>

namespace strata::core {

/// x: (count, N), indices of rows, which have no gradient; table: (rows, W); y: (count, N, W). refuse_other_rows has checked the
/// indices. Gradients of a row are added in the order of the batch, so micro-batches do not change their bits.
template <embedding_settings S, class P, shape In>
struct kernel<cpu, lookup<S>, P, In> {
  using T = typename P::value_type;

  static void forward(const operands<T>& o) {
    for_each_number(o, [&](std::ptrdiff_t row, std::ptrdiff_t at) { std::copy_n(o.w[0] + row, S.width, o.y + at); });
  }

  static void backward(const operands<T>& o) {
    if (!o.dw[0]) return;
    if (!o.adds_dw) std::fill_n(o.dw[0], std::ptrdiff_t(S.rows) * S.width, T{});
    for_each_number(o, [&](std::ptrdiff_t row, std::ptrdiff_t at) {
      T* const sum = o.dw[0] + row;
      simd::for_vectors_unrolled<T, 4>(S.width, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
        lane.store(sum + i, lane.load(sum + i) + lane.load(o.dy + at + i));
      });
    });
  }

 private:
  /// Calls f(row of the table, the row in y or dy), each by its first element, for each element of x.
  template <class F>
  static void for_each_number(const operands<T>& o, F&& f) {
    const std::ptrdiff_t numbers = std::ptrdiff_t(o.count) * In.size();
    for (std::ptrdiff_t i = 0; i < numbers; ++i) f(std::ptrdiff_t(o.x[0][i]) * S.width, i * S.width);
  }
};

}  // namespace strata::core
