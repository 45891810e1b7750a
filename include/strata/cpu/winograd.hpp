// Winograd's F(2x2, 3x3): a 2x2 window of a 3x3 convolution with 16 instead of 36 multiplications per channel, and more
// exactly, since fewer numbers are added in a row.  Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016.
#pragma once
#include <strata/cpu/gemm.hpp>

namespace strata::simd {

/// u[16][C][filters rounded up] = G g G^T of the kernel g[3][3][C][F].
template <class T>
[[gnu::noinline]] void winograd_weights(const T* w, int C, int F, T* u) {
  constexpr int L = lanes<T>;
  const int width = padded<T>(F);
  const std::ptrdiff_t tap = std::ptrdiff_t(C) * F, element = std::ptrdiff_t(C) * width;
  const vec<T> half = broadcast(T(0.5));
  for (int c = 0; c < C; ++c)
    for (int f = 0; f < F; f += L) {
      const int n = F - f < L ? F - f : L;
      vec<T> g[9], h[12];
      unroll<9>([&](auto t) STRATA_INLINE { g[t] = load_first(w + t * tap + std::ptrdiff_t(c) * F + f, n); });
      unroll<3>([&](auto j) STRATA_INLINE {
        h[j] = g[j], h[9 + j] = g[6 + j];
        h[3 + j] = half * (g[j] + g[3 + j] + g[6 + j]), h[6 + j] = half * (g[j] - g[3 + j] + g[6 + j]);
      });
      unroll<4>([&](auto r) STRATA_INLINE {
        const vec<T>* q = h + r * 3;
        T* to = u + r * 4 * element + std::ptrdiff_t(c) * width + f;
        store(to, q[0]), store(to + element, half * (q[0] + q[1] + q[2]));
        store(to + 2 * element, half * (q[0] - q[1] + q[2])), store(to + 3 * element, q[2]);
      });
    }
}

/// v[16][tiles][width] = B^T d B of one 4x4 tile d: `v` points at the tile; channels in whole vectors.
template <class T>
[[gnu::noinline]] void winograd_input(const T* x, std::ptrdiff_t x_row, int C, T* v, std::ptrdiff_t element) {
  constexpr int L = lanes<T>;
  const auto along = [](vec<T>* d, auto step) STRATA_INLINE {
    const vec<T> a = d[0] - d[2 * step], b = d[step] + d[2 * step], c = d[2 * step] - d[step], e = d[step] - d[3 * step];
    d[0] = a, d[step] = b, d[2 * step] = c, d[3 * step] = e;
  };
  for (int c = 0; c < C; c += L) {
    vec<T> d[16];
    if (C - c >= L)
      unroll<16>([&](auto i) STRATA_INLINE { d[i] = load(x + (i / 4) * x_row + (i % 4) * C + c); });
    else
      unroll<16>([&](auto i) STRATA_INLINE { d[i] = load_first(x + (i / 4) * x_row + (i % 4) * C + c, C - c); });
    unroll<4>([&](auto i) STRATA_INLINE { along(d + i, std::integral_constant<int, 4>{}); });
    unroll<4>([&](auto i) STRATA_INLINE { along(d + i * 4, std::integral_constant<int, 1>{}); });
    unroll<16>([&](auto i) STRATA_INLINE { store(v + i * element + c, d[i]); });
  }
}

/// m[16][Tiles][m_row] = v[16][Tiles][v_row] u[16][C][m_row], for columns from ... to - 1 in steps of V vectors.
template <class T, int Tiles, int V>
[[gnu::noinline]] void winograd_products(const T* v, int v_row, const T* u, int C, T* m, int m_row, int from, int to) {
  constexpr int L = lanes<T>;
  for (int q = 0; q < 16; ++q, v += Tiles * v_row, u += std::ptrdiff_t(C) * m_row, m += Tiles * m_row) {
    const T* a[Tiles];
    unroll<Tiles>([&](auto t) STRATA_INLINE { a[t] = v + t * v_row; });
    for (int column = from; column < to; column += V * L) {
      vec<T> sum[Tiles][V];
      unroll<Tiles * V>([&](auto i) STRATA_INLINE { sum[i / V][i % V] = vec<T>{}; });
      const T* b = u + column;
      for (std::ptrdiff_t k = 0; k < C; ++k, b += m_row) {
        vec<T> w[V];
        unroll<V>([&](auto j) STRATA_INLINE {
          w[j] = load(b + j * L);
          keep(w[j]);
        });
        unroll<Tiles>([&](auto t) STRATA_INLINE {
          vec<T> x = broadcast(a[t][k]);
          if constexpr (V > 1) keep(x);
          unroll<V>([&](auto j) STRATA_INLINE { sum[t][j] = x * w[j] + sum[t][j]; });
        });
      }
      unroll<Tiles * V>([&](auto i) STRATA_INLINE { store(m + (i / V) * m_row + column + (i % V) * L, sum[i / V][i % V]); });
    }
  }
}

/// The four outputs A^T m A of one tile and of the filters at `m`, without bias; in row order.
template <class T>
STRATA_INLINE inline void winograd_output(const T* m, std::ptrdiff_t element, vec<T> (&y)[4]) {
  vec<T> z[8];
  unroll<4>([&](auto i) STRATA_INLINE {
    const T* r = m + i * 4 * element;
    const vec<T> m0 = load(r), m1 = load(r + element), m2 = load(r + 2 * element), m3 = load(r + 3 * element);
    z[i * 2] = m0 + m1 + m2, z[i * 2 + 1] = m1 - m2 - m3;
  });
  unroll<2>([&](auto j) STRATA_INLINE {
    y[j] = z[j] + z[2 + j] + z[4 + j], y[2 + j] = z[2 + j] - z[4 + j] - z[6 + j];
  });
}

}  // namespace strata::simd
