// The weight gradient of a 3x3 convolution by Winograd's F(3x3, 2x2): of each 2x2 window of outputs and the 4x4 window of x
// that it saw.
#pragma once
#include <strata/cpu/winograd_convolution.hpp>

namespace strata::simd {

/// z[16][tile] = G d G^T of the 2x2 window d of dz; outputs outside the image count as 0.
template <class T>
STRATA_INLINE inline void winograd_window(const vec<T> (&d)[4], T* z, std::ptrdiff_t element) {
  const vec<T> half = broadcast(T(0.5));
  vec<T> h[8];
  unroll<2>([&](auto j) STRATA_INLINE {
    h[j] = d[j], h[6 + j] = d[2 + j];
    h[2 + j] = half * (d[j] + d[2 + j]), h[4 + j] = half * (d[j] - d[2 + j]);
  });
  in_grid(z, element, 4 * element, [&](auto i, T* p) STRATA_INLINE {
    const vec<T> a = h[i / 4 * 2], b = h[i / 4 * 2 + 1];
    store(p, i % 4 == 0 ? a : i % 4 == 1 ? half * (a + b) : i % 4 == 2 ? half * (a - b) : b);
  });
}

/// m[16][R][V vectors] = sum over tiles of v[16][tile][row] z[16][tile][V vectors].
template <class T, int R, int V>
[[gnu::noinline]] void winograd_gradient_products(const T* v, std::ptrdiff_t v_row, std::ptrdiff_t v_element, const T* z,
                                                  std::ptrdiff_t z_row, std::ptrdiff_t z_element, int tiles, T* m) {
  constexpr int L = lanes<T>;
  for (int q = 0; q < 16; ++q, v += v_element, z += z_element, m += R * V * L) {
    vec<T> sum[R][V];
    unroll<R * V>([&](auto i) STRATA_INLINE { sum[i / V][i % V] = vec<T>{}; });
    const T *a = v, *b = z;
    for (int t = 0; t < tiles; ++t, a += v_row, b += z_row) {
      vec<T> d[V];
      unroll<V>([&](auto j) STRATA_INLINE {
        d[j] = load(b + j * L);
        keep(d[j]);
      });
      unroll<R>([&](auto r) STRATA_INLINE {
        vec<T> x = broadcast(a[r]);
        if constexpr (V > 1) keep(x);
        unroll<V>([&](auto j) STRATA_INLINE { sum[r][j] = x * d[j] + sum[r][j]; });
      });
    }
    unroll<R * V>([&](auto i) STRATA_INLINE { store(m + i * L, sum[i / V][i % V]); });
  }
}

/// dw[3][3] (+)= A^T m A for `rows` channels and n filters; m has m_row numbers for each channel.
template <class T>
[[gnu::noinline]] void winograd_gradient_store(const T* m, std::ptrdiff_t element, int m_row, int rows, int n, T* dw,
                                               std::ptrdiff_t tap, std::ptrdiff_t dw_row, bool add) {
  constexpr int L = lanes<T>;
  for (int r = 0; r < rows; ++r, m += m_row, dw += dw_row)
    for (int f = 0; f < n; f += L) {
      vec<T> z[12], y[9];
      vec<T> d[16];
      in_grid(m + f, element, 4 * element, [&](auto i, const T* p) STRATA_INLINE { d[i] = load(p); });
      unroll<4>([&](auto i) STRATA_INLINE {
        const vec<T> both = d[i * 4 + 1] + d[i * 4 + 2];
        z[i * 3] = d[i * 4] + both, z[i * 3 + 1] = d[i * 4 + 1] - d[i * 4 + 2], z[i * 3 + 2] = both - d[i * 4 + 3];
      });
      unroll<3>([&](auto j) STRATA_INLINE {
        const vec<T> both = z[3 + j] + z[6 + j];
        y[j] = z[j] + both, y[3 + j] = z[3 + j] - z[6 + j], y[6 + j] = both - z[9 + j];
      });
      T* const to = dw + f;
      if (n - f >= L)
        unroll<9>([&](auto t) STRATA_INLINE { store(to + t * tap, add ? load(to + t * tap) + y[t] : y[t]); });
      else
        unroll<9>([&](auto t)
                      STRATA_INLINE { store_first(to + t * tap, add ? load_first(to + t * tap, n - f) + y[t] : y[t], n - f); });
    }
}

/// Goes through the samples in order, and through large images in parts of so many tiles that all transforms stay in the
/// second-level cache. A part is summed by itself, so its size depends on the shape alone.
template <class T>
struct winograd_weight_gradient {
  winograd_convolution<T> convolution;

  static constexpr int L = lanes<T>, most_vectors = registers == 32 ? 2 : 1;
  constexpr int C() const { return convolution.C; }
  constexpr int F() const { return convolution.F; }
  constexpr int image_tiles() const { return convolution.down() * convolution.across(); }
  constexpr int limit() const { return std::clamp(16384 / (C() + F()), 16, 128); }
  constexpr int parts() const { return (image_tiles() + limit() - 1) / limit(); }
  constexpr int part() const { return (image_tiles() + parts() - 1) / parts(); }
  constexpr int images() const { return std::max(1, limit() / image_tiles()); }
  constexpr int rows() const {
    const auto cost = [&](int r) { return (C() + r - 1) / r * (r + 1); };
    return cost(12) < cost(8) && registers == 32 ? 12 : 8;
  }
  constexpr int v_row() const { return padded<T>((C() + rows() - 1) / rows() * rows()); }  // in whole register blocks
  constexpr int v_element() const { return part() * images() * v_row() + L; }
  constexpr int panel() const { return F() > L ? most_vectors : 1; }
  constexpr int z_panels() const { return (F() + panel() * L - 1) / (panel() * L); }
  constexpr int z_element() const { return part() * images() * panel() * L + L; }
  constexpr int for_v() const { return aligned_size<T>(16 * v_element()); }
  constexpr int for_z() const { return aligned_size<T>(16 * z_panels() * z_element()); }
  constexpr int scratch() const { return convolution.for_frame() + for_v() + for_z() + aligned_size<T>(16 * 12 * panel() * L); }

  /// z[panel][16][tile][panel vectors] of the tiles from `at`.
  [[gnu::noinline]] void windows(const T* dz, int count, tile_walk at, T* z) const {
    const std::ptrdiff_t f_row = F(), dz_row = f_row * convolution.out_width;
    const int width = panel() * L;
    for (int t = 0; t < count; ++t, at.skip(1), z += width) {
      const T* const corner = dz + 2 * (at.row * dz_row + at.column * f_row);
      const bool right = 2 * at.column + 1 < convolution.out_width, below = 2 * at.row + 1 < convolution.out_height;
      for (int f = 0; f < F(); f += L) {
        const int n = F() - f;
        const auto get = [&](std::ptrdiff_t where, bool inside) STRATA_INLINE {
          if (!inside) return vec<T>{};
          return n >= L ? load(corner + f + where) : load_first(corner + f + where, n);
        };
        const vec<T> d[4] = {get(0, true), get(f_row, right), get(dz_row, below), get(dz_row + f_row, right && below)};
        winograd_window<T>(d, z + (f / width) * 16 * std::ptrdiff_t(z_element()) + f % width, z_element());
      }
    }
  }

  void operator()(const T* x, const T* dz, int count, T* dw, bool add, T* scratch) const {
    T *const framed = scratch, *const v = framed + convolution.for_frame(), *const z = v + for_v(), *const m = z + for_z();
    const frame& f = convolution.x;
    const std::ptrdiff_t x_row = std::ptrdiff_t(f.outer_width) * C(), x_size = std::ptrdiff_t(f.height) * f.width * C(),
                         dz_size = std::ptrdiff_t(convolution.out_height) * convolution.out_width * F();
    for (int image = 0; image < count; image += images()) {
      const int some = std::min(images(), count - image);
      tile_walk walk{convolution.down(), convolution.across()};
      for (int first = 0; first < image_tiles(); first += part()) {
        const int tiles = std::min(part(), image_tiles() - first);
        const tile_walk begin = walk;
        for (int i = 0; i < some; ++i) {
          const T* mine = x + (image + i) * x_size;
          if (f.needed()) {
            if (first == 0) put_into_frame(mine, f, C(), framed);
            mine = framed;
          }
          walk = begin;
          for (int t = 0; t < tiles;) {
            const int n = std::min(tiles - t, walk.across - walk.column);
            winograd_inputs(mine + 2 * (walk.row * x_row + walk.column * C()), x_row, C(), n,
                            v + std::ptrdiff_t(i * tiles + t) * v_row(), v_row(), v_element());
            walk.skip(n), t += n;
          }
          windows(dz + (image + i) * dz_size, tiles, begin, z + std::ptrdiff_t(i * tiles) * panel() * L);
        }
        products(v, z, tiles, some, dw, add || image > 0 || first > 0, m);
      }
    }
  }

  void products(const T* v, const T* z, int tiles, int images, T* dw, bool add, T* m) const {
    for (int p = 0; p < z_panels(); ++p) {
      const int f = p * panel() * L, vectors = std::min(panel(), padded<T>(F() - f) / L);
      with_vectors(vectors, [&](auto V) {
        if constexpr (V <= most_vectors) {
          if (registers == 32 && rows() == 12)
            blocks<12, V>(v, z + p * 16 * std::ptrdiff_t(z_element()), tiles, images, f, dw, add, m);
          else
            blocks<8, V>(v, z + p * 16 * std::ptrdiff_t(z_element()), tiles, images, f, dw, add, m);
        }
      });
    }
  }

  template <int R, int V>
  void blocks(const T* v, const T* z, int tiles, int images, int f, T* dw, bool add, T* m) const {
    const std::ptrdiff_t row = F(), tap = row * C();
    for (int c = 0; c < C(); c += R)
      for (int i = 0; i < images; ++i) {
        winograd_gradient_products<T, R, V>(v + std::ptrdiff_t(i * tiles) * v_row() + c, v_row(), v_element(),
                                            z + std::ptrdiff_t(i * tiles) * panel() * L, panel() * L, z_element(), tiles, m);
        winograd_gradient_store(m, R * V * L, V * L, std::min(R, C() - c), std::min(V * L, F() - f), dw + c * row + f, tap, row,
                                add || i > 0);
      }
  }
};

}  // namespace strata::simd
