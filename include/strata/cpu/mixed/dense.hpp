// Dense layers in mixed precision: all three products have bfloat16 operands if the layer is large.
#pragma once
#include <algorithm>
#include <strata/base/precision.hpp>
#include <strata/cpu/kernels/dense.hpp>
#include <strata/cpu/products/mixed_product.hpp>

namespace strata {

namespace simd {

/// B: how pairs are multiplied. x: (count, K); W: (K, N); y: (count, N).
template <class B, dense_settings S, class Activation, shape In>
struct mixed_dense {
  static constexpr int K = In[0], N = S.units, L = lanes<float>;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;

  /// Whole vectors, but not a power of two, which would map rows to the same sets of the caches.
  static constexpr int row(int n) { return padded<float>(n) + (padded<float>(n) % 256 == 0 ? 16 : 0); }
  static constexpr int x_row = padded<float>(K) / 2, dz_row = padded<float>(N) / 2, wide_x = row(K), wide_dz = row(N);
  static constexpr int by_input = aligned_size<float>((K + 1) / 2 * wide_dz), by_unit = (N + 1) / 2 * wide_x;
  /// Rounded x (forward), or x, dz, dz and dz times the slope (backward): one row of pairs for one sample, or for two.
  static constexpr kernel_traits traits{.scratch = wide_x + wide_dz,
                                        .scratch_per_sample = wide_x + 2 * wide_dz + (activated ? aligned_size<float>(N) : 0),
                                        .derived = by_input + by_unit,
                                        .reads_output = activated};

  static void derive(const float* const* w, float* to) {
    pair_rows<B>(w[0], K, N, reinterpret_cast<bf16_pair*>(to), wide_dz);
    pair_columns<B>(w[0], K, N, reinterpret_cast<bf16_pair*>(to) + by_input, wide_x);
  }

  static void forward(const operands<float>& o) {
    auto* const x = reinterpret_cast<bf16_pair*>(o.scratch);
    round_rows<B>(o.x[0], o.count, K, x, x_row);
    multiply_pairs<B, Activation>({.rows = o.count,
                                   .columns = N,
                                   .length = (K + 1) / 2,
                                   .a = x,
                                   .a_row = x_row,
                                   .a_step = 1,
                                   .b = reinterpret_cast<const bf16_pair*>(o.derived),
                                   .b_row = wide_dz,
                                   .c = o.y,
                                   .c_row = N,
                                   .bias = S.bias ? o.w[1] : nullptr});
  }

  static void backward(const operands<float>& o) {
    const float* dz = o.dy;
    auto* pairs = reinterpret_cast<bf16_pair*>(o.scratch);
    if constexpr (activated) {
      through_activation<Activation>(o.dy, o.y, o.scratch, o.count * N);
      dz = o.scratch;
      pairs += aligned_size<float>(o.count * N);
    }
    if (S.bias && o.dw[1]) column_sums(dz, o.count, N, o.dw[1], o.adds_dw);
    if (o.dw[0]) {
      const int steps = (o.count + 1) / 2;
      auto* const z = pairs + steps * wide_x;
      pair_rows<B, true>(o.x[0], o.count, K, pairs, wide_x);
      pair_rows<B, true>(dz, o.count, N, z, wide_dz);
      multiply_pairs<B>({.rows = K,
                         .columns = N,
                         .length = steps,
                         .a = pairs,
                         .a_row = 1,
                         .a_step = wide_x,
                         .b = z,
                         .b_row = wide_dz,
                         .c = o.dw[0],
                         .c_row = N,
                         .add = o.adds_dw});
    }
    if (o.dx[0]) {
      round_rows<B>(dz, o.count, N, pairs, dz_row);
      multiply_pairs<B>({.rows = o.count,
                         .columns = K,
                         .length = (N + 1) / 2,
                         .a = pairs,
                         .a_row = dz_row,
                         .a_step = 1,
                         .b = reinterpret_cast<const bf16_pair*>(o.derived) + by_input,
                         .b_row = wide_x,
                         .c = o.dx[0],
                         .c_row = K,
                         .add = o.adds_dx[0]});
    }
  }
};

/// True if the layer is large enough for rounding its weights once per step to pay.
constexpr bool pays_in_bf16(int inputs, int units) { return inputs >= 64 && units >= 32 && inputs * units >= 32 * 1024; }

}  // namespace simd

namespace core {
template <dense_settings S, shape In>
  requires(simd::pays_in_bf16(In[0], S.units))
struct kernel<cpu, affine<S>, precision::mixed_bf16, In> : simd::mixed_dense<simd::bf16, S, linear, In> {};

template <dense_settings S, class Activation, shape In>
  requires(simd::follows_in_registers<Activation> && simd::pays_in_bf16(In[0], S.units))
struct kernel<cpu, fused<affine<S>, Activation>, precision::mixed_bf16, In> : simd::mixed_dense<simd::bf16, S, Activation, In> {};
}  // namespace core

}  // namespace strata
