// Winograd's F(2x2, 3x3) with bfloat16 products: both transforms are computed in float, and their results rounded.
#pragma once
#include <strata/cpu/simd/bf16.hpp>

namespace strata::simd {

/// u[16][(C + 1) / 2][filters rounded up] = G g G^T of the kernel g[3][3][C][F], as pairs of channels.
template <class B>
[[gnu::noinline]] void mixed_winograd_weights(const float* w, int C, int F, bf16_pair* u) {
  constexpr int L = lanes<float>;
  const int width = padded<float>(F);
  const std::ptrdiff_t tap = std::ptrdiff_t(C) * F, element = std::ptrdiff_t((C + 1) / 2) * width;
  const auto transform = [&](const float* from, int n, vec<float>* to) STRATA_INLINE {
    vec<float> g[9], h[12];
    STRATA_UNROLL
    for (int t = 0; t < 9; ++t) g[t] = load_first(from + t * tap, n);
    STRATA_UNROLL
    for (int j = 0; j < 3; ++j) {
      h[j] = g[j], h[9 + j] = g[6 + j];
      h[3 + j] = 0.5f * (g[j] + g[3 + j] + g[6 + j]), h[6 + j] = 0.5f * (g[j] - g[3 + j] + g[6 + j]);
    }
    STRATA_UNROLL
    for (int r = 0; r < 4; ++r) {
      const vec<float>* q = h + r * 3;
      to[r * 4] = q[0], to[r * 4 + 1] = 0.5f * (q[0] + q[1] + q[2]);
      to[r * 4 + 2] = 0.5f * (q[0] - q[1] + q[2]), to[r * 4 + 3] = q[2];
    }
  };
  for (int c = 0; c < C; c += 2, w += 2 * F, u += width)
    for (int f = 0; f < F; f += L) {
      const int n = F - f < L ? F - f : L;
      vec<float> first[16], second[16] = {};
      transform(w + f, n, first);
      if (c + 1 < C) transform(w + F + f, n, second);
      STRATA_UNROLL
      for (int i = 0; i < 16; ++i) store_pairs(u + i * element + f, make_pairs<B>(first[i], second[i]));
    }
}

/// v[16][tiles][row] = B^T d B of one 4x4 tile d, as pairs of channels. `v` points at the tile.
template <class B>
[[gnu::noinline]] void mixed_winograd_input(const float* x, std::ptrdiff_t x_row, int C, bf16_pair* v, std::ptrdiff_t element) {
  constexpr int L = lanes<float>;
  const auto along = [](vec<float>* d, auto step) STRATA_INLINE {
    const vec<float> a = d[0] - d[2 * step], b = d[step] + d[2 * step], c = d[2 * step] - d[step], e = d[step] - d[3 * step];
    d[0] = a, d[step] = b, d[2 * step] = c, d[3 * step] = e;
  };
  for (int c = 0; c < C; c += L) {
    vec<float> d[16];
    if (C - c >= L) {
      STRATA_UNROLL
      for (int i = 0; i < 16; ++i) d[i] = load(x + (i / 4) * x_row + (i % 4) * C + c);
    } else {
      STRATA_UNROLL
      for (int i = 0; i < 16; ++i) d[i] = load_first(x + (i / 4) * x_row + (i % 4) * C + c, C - c);
    }
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      along(d + i, std::integral_constant<int, 4>{});
    }
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      along(d + i * 4, std::integral_constant<int, 1>{});
    }
    STRATA_UNROLL
    for (int i = 0; i < 16; ++i) B::store_row(v + i * element + c / 2, d[i]);
  }
}

/// m[16][tiles][m_row] = v[16][tiles][v_row] u[16][K][m_row] over K pairs of channels, for `Tiles` tiles and columns [from, to)
/// in steps of V vectors. v_element, m_element: distances between two of the 16 matrices.
template <class B, int Tiles, int V>
[[gnu::noinline]] void mixed_winograd_products(const bf16_pair* v, int v_row, std::ptrdiff_t v_element, const bf16_pair* u, int K,
                                               float* m, int m_row, std::ptrdiff_t m_element, int from, int to, int tiles) {
  constexpr int L = lanes<float>;
  for (int q = 0; q < 16; ++q, u += std::ptrdiff_t(K) * m_row, v += v_element, m += m_element)
    for (int column = from; column < to; column += V * L)
      for (int tile = 0; tile < tiles; tile += Tiles) {
        const bf16_pair* a[Tiles];
        STRATA_UNROLL
        for (int t = 0; t < Tiles; ++t) a[t] = v + std::ptrdiff_t(tile + t) * v_row;
        vec<float> sum[Tiles][V];
        STRATA_UNROLL
        for (int i = 0; i < Tiles * V; ++i) {
          sum[i / V][i % V] = vec<float>{};
        }
        const bf16_pair* b = u + column;
        for (std::ptrdiff_t k = 0; k < K; ++k, b += m_row) accumulate_pairs<B>(sum, a, k, b);
        float* const c = m + std::ptrdiff_t(tile) * m_row + column;
        STRATA_UNROLL
        for (int i = 0; i < Tiles * V; ++i) store(c + (i / V) * m_row + (i % V) * L, sum[i / V][i % V]);
      }
}

/// The four outputs A^T m A, without bias, of one tile and a vector of filters at `m`, in row order.
STRATA_INLINE inline void mixed_winograd_output(const float* m, std::ptrdiff_t element, vec<float> (&y)[4]) {
  vec<float> z[8];
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float* r = m + i * 4 * element;
    const vec<float> m0 = load(r), m1 = load(r + element), m2 = load(r + 2 * element), m3 = load(r + 3 * element);
    z[i * 2] = m0 + m1 + m2, z[i * 2 + 1] = m1 - m2 - m3;
  }
  STRATA_UNROLL
  for (int j = 0; j < 2; ++j) y[j] = z[j] + z[2 + j] + z[4 + j], y[2 + j] = z[2 + j] - z[4 + j] - z[6 + j];
}

}  // namespace strata::simd
