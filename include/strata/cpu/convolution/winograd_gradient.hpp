// The weight gradient of a 3x3 convolution by Winograd's F(3x3, MxM), from each MxM window of outputs and the (M + 2)x(M + 2)
// window of x that it sees.
#pragma once
#include <strata/cpu/convolution/winograd_convolution.hpp>

namespace strata::simd {

/// z[element] = the values of the window d[row][column] of dz at all points. Unlike those of a kernel they are not scaled: the
/// sums over tiles are.
template <int M, class T>
STRATA_INLINE inline void winograd_window(const vec<T> (&d)[M][M], T* z, std::ptrdiff_t element) {
  using points = winograd_points<M>;
  constexpr int N = points::count;
  vec<T> along[N][M];
  STRATA_UNROLL
  for (int j = 0; j < M; ++j) {
    vec<T> column[M], out[N];
    STRATA_UNROLL
    for (int i = 0; i < M; ++i) column[i] = d[i][j];
    points::template values<M, T>(column, out);
    STRATA_UNROLL
    for (int i = 0; i < N; ++i) along[i][j] = out[i];
  }
  for (int i = 0; i < N; ++i) {
    vec<T> out[N];
    points::template values<M, T>(along[i], out);
    STRATA_UNROLL
    for (int j = 0; j < N; ++j) store(z, out[j]), z += element;
  }
}

/// m[element][R][V vectors] = the sum over tiles of v[element][tile][row] z[element][tile][V vectors].
template <class T, int R, int V>
[[gnu::noinline]] void winograd_gradient_products(int elements, const T* v, std::ptrdiff_t v_row, std::ptrdiff_t v_element,
                                                  const T* z, std::ptrdiff_t z_row, std::ptrdiff_t z_element, int tiles, T* m) {
  constexpr int L = lanes<T>;
  for (int q = 0; q < elements; ++q, v += v_element, z += z_element, m += R * V * L) {
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) {
      sum[i / V][i % V] = vec<T>{};
    }
    const T *a = v, *b = z;
    for (int t = 0; t < tiles; ++t, a += v_row, b += z_row) {
      vec<T> d[V];
      STRATA_UNROLL
      for (int j = 0; j < V; ++j) {
        d[j] = load(b + j * L);
        keep(d[j]);
      }
      STRATA_UNROLL
      for (int r = 0; r < R; ++r) {
        vec<T> x = broadcast(a[r]);
        if constexpr (V > 1) keep(x);
        STRATA_UNROLL
        for (int j = 0; j < V; ++j) sum[r][j] = multiply_add(x, d[j], sum[r][j]);
      }
    }
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) store(m + i * L, sum[i / V][i % V]);
  }
}

/// dw[3][3] (+)= A^T m A for `rows` channels and n filters. m has m_row elements for each channel.
template <int M, class T>
[[gnu::noinline]] void winograd_gradient_store(const T* m, std::ptrdiff_t element, int m_row, int rows, int n, T* dw,
                                               std::ptrdiff_t tap, std::ptrdiff_t dw_row, bool add) {
  using points = winograd_points<M>;
  constexpr int L = lanes<T>, N = points::count;
  for (int r = 0; r < rows; ++r, m += m_row, dw += dw_row)
    for (int f = 0; f < n; f += L) {
      vec<T> along[3][N];
      for (int j = 0; j < N; ++j) {
        vec<T> d[N], out[3];
        const T* from = m + f + j * element;
        STRATA_UNROLL
        for (int i = 0; i < N; ++i) {
          d[i] = T(points::scale[std::size_t(i)]) * load(from), from += N * element;
          keep(d[i]);  // or some compilers would fuse it with an addition
        }
        points::template sums<3, T>(d, out);
        STRATA_UNROLL
        for (int i = 0; i < 3; ++i) along[i][j] = out[i];
      }
      T* to = dw + f;
      for (int i = 0; i < 3; ++i) {
        vec<T> d[N], out[3];
        STRATA_UNROLL
        for (int j = 0; j < N; ++j) {
          d[j] = T(points::scale[std::size_t(j)]) * along[i][j];
          keep(d[j]);
        }
        points::template sums<3, T>(d, out);
        STRATA_UNROLL
        for (int j = 0; j < 3; ++j) {
          if (n - f >= L)
            store(to, add ? load(to) + out[j] : out[j]);
          else
            store_first(to, add ? load_first(to, n - f) + out[j] : out[j], n - f);
          to += tap;
        }
      }
    }
}

/// Goes through the samples in order, and through large images in parts: all transforms of a part stay in the second-level cache.
/// A part is summed by itself, so its size depends on the shape only.
template <class T, int M, bool Whole = false>
struct winograd_weight_gradient {
  winograd_convolution<T, M, winograd_panels::all_widths, Whole> convolution;
  int all = convolution.C + convolution.F;  // channels and filters; of a part of a convolution: those of the whole one

  static constexpr int L = lanes<T>, elements = winograd_points<M>::elements, most_vectors = registers == 32 ? 2 : 1;
  constexpr int C() const { return convolution.C; }
  constexpr int F() const { return convolution.F; }
  constexpr int image_tiles() const { return convolution.down() * convolution.across(); }
  constexpr int limit() const { return std::clamp(262144 / elements / all, 16, 2048 / elements); }
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
  constexpr int for_v() const { return aligned_size<T>(elements * v_element()); }
  constexpr int for_z() const { return aligned_size<T>(elements * z_panels() * z_element()); }
  constexpr int scratch() const { return for_v() + for_z() + aligned_size<T>(elements * 12 * panel() * L); }

  /// z[panel][element][tile][panel vectors] of the tiles from `at` on.
  [[gnu::noinline]] void windows(const T* dz, int count, tile_walk at, T* z) const {
    const std::ptrdiff_t f_row = F(), dz_row = f_row * convolution.out_width;
    const int width = panel() * L;
    for (int t = 0; t < count; ++t, at.skip(1), z += width) {
      const T* const corner = dz + M * (at.row * dz_row + at.column * f_row);
      const int rows = convolution.out_height - M * at.row, columns = convolution.out_width - M * at.column;
      for (int f = 0; f < F(); f += L) {
        const int n = std::min(L, F() - f);
        vec<T> d[M][M];
        const T* line = corner + f;
        for (int i = 0; i < M; ++i, line += dz_row) {
          STRATA_UNROLL
          for (int j = 0; j < M; ++j) {
            d[i][j] = i >= rows || j >= columns ? vec<T>{} : n == L ? load(line + j * f_row) : load_first(line + j * f_row, n);
          }
        }
        winograd_window<M, T>(d, z + (f / width) * elements * std::ptrdiff_t(z_element()) + f % width, z_element());
      }
    }
  }

  void operator()(const T* x, const T* dz, int count, T* dw, bool add, T* scratch) const {
    T *const v = scratch, *const z = v + for_v(), *const m = z + for_z();
    const tiled_image& from = convolution.image;
    const std::ptrdiff_t x_size = std::ptrdiff_t(from.height) * from.width * C(),
                         dz_size = std::ptrdiff_t(convolution.out_height) * convolution.out_width * F();
    for (int image = 0; image < count; image += images()) {
      const int some = std::min(images(), count - image);
      tile_walk walk{convolution.down(), convolution.across()};
      for (int first = 0; first < image_tiles(); first += part()) {
        const int tiles = std::min(part(), image_tiles() - first);
        const tile_walk begin = walk;
        for (int i = 0; i < some; ++i) {
          walk = begin;
          for (int t = 0; t < tiles;) {
            const int n = std::min(tiles - t, walk.across - walk.column);
            winograd_inputs<M, Whole>(x + (image + i) * x_size, from, walk.row, walk.column, C(), n,
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
            blocks<12, V>(v, z + p * elements * std::ptrdiff_t(z_element()), tiles, images, f, dw, add, m);
          else
            blocks<8, V>(v, z + p * elements * std::ptrdiff_t(z_element()), tiles, images, f, dw, add, m);
        }
      });
    }
  }

  template <int R, int V>
  void blocks(const T* v, const T* z, int tiles, int images, int f, T* dw, bool add, T* m) const {
    const std::ptrdiff_t row = F(), tap = row * C();
    for (int c = 0; c < C(); c += R)
      for (int i = 0; i < images; ++i) {
        winograd_gradient_products<T, R, V>(elements, v + std::ptrdiff_t(i * tiles) * v_row() + c, v_row(), v_element(),
                                            z + std::ptrdiff_t(i * tiles) * panel() * L, panel() * L, z_element(), tiles, m);
        winograd_gradient_store<M>(m, R * V * L, V * L, std::min(R, C() - c), std::min(V * L, F() - f), dw + c * row + f, tap,
                                   row, add || i > 0);
      }
  }
};

}  // namespace strata::simd
