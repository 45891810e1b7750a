// Concatenation along the last axis on vectors.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/concat.hpp>

namespace strata::core {

/// x[k]: (count, ..., C_k); y: (count, ..., sum of C_k).
template <class P, shape First, shape... Rest>
struct kernel<cpu, stack_of_branches, P, First, Rest...> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int branches = 1 + sizeof...(Rest), pixels = First.size() / First.last();
  static constexpr int channels[branches] = {First.last(), Rest.last()...}, all = (First.last() + ... + Rest.last());
  /// Pixels per block: few enough that they stay in the first-level cache until all branches are copied.
  static constexpr std::ptrdiff_t some = std::max(1, 4096 / all);

  /// f(branch, first pixel, pixels, first channel in y)
  static void for_blocks(const operands<T>& o, auto&& f) {
    const std::ptrdiff_t last = std::ptrdiff_t(o.count) * pixels;
    for (std::ptrdiff_t p = 0; p < last; p += some)
      for (int k = 0, at = 0; k < branches; at += channels[k++]) f(k, p, std::min(some, last - p), at);
  }
  static void forward(const operands<T>& o) {
    for_blocks(o, [&](int k, std::ptrdiff_t p, std::ptrdiff_t rows, int at) {
      simd::copy_rows(o.x[k] + p * channels[k], channels[k], o.y + p * all + at, all, rows, channels[k]);
    });
  }
  static void backward(const operands<T>& o) {
    for_blocks(o, [&](int k, std::ptrdiff_t p, std::ptrdiff_t rows, int at) {
      if (o.dx[k])
        simd::copy_rows(o.dy + p * all + at, all, o.dx[k] + p * channels[k], channels[k], rows, channels[k], o.adds_dx[k]);
    });
  }
};

}  // namespace strata::core
