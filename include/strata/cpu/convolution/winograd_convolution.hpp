// 3x3 convolutions of several images by Winograd's F(MxM, 3x3).
#pragma once
#include <algorithm>
#include <strata/cpu/convolution/winograd.hpp>

namespace strata::simd {

/// Walks through the tiles of several images, row by row.
struct tile_walk {
  int down, across;
  int image = 0, row = 0, column = 0;

  void skip(int tiles) {
    column += tiles;
    if (column < across) return;
    column = 0;
    if (++row == down) row = 0, ++image;
  }
};

/// A 3x3 convolution of several images with C channels and F filters, by tiles of MxM outputs. It takes as many tiles at a time
/// as leave their transforms in half of a second-level cache while all weights pass. Widths: those of the panels of F. Whole: C
/// and F are multiples of a vector.
template <class T, int M, unsigned Widths = winograd_panels::all_widths, bool Whole = false>
struct winograd_convolution {
  int C, F, out_height, out_width;
  tiled_image image;

  static constexpr int L = lanes<T>, elements = winograd_points<M>::elements;
  constexpr int down() const { return (out_height + M - 1) / M; }
  constexpr int across() const { return (out_width + M - 1) / M; }
  constexpr int tiles() const {
    const auto cut = winograd_panels::of<T>(F);
    const int rows = winograd_rows(cut.each);
    const int bytes = int(sizeof(T)) * elements * (padded<T>(C) + cut.each * L), fitting = std::clamp(448 * 1024 / bytes, 12, 72);
    return (fitting + rows - 1) / rows * rows;
  }
  /// The rows up to which the last panel may be rounded.
  constexpr int rows() const { return tiles() + 12; }
  // One vector more than needed, because elements must not lie a power of two apart.
  constexpr int v_row() const { return padded<T>(C); }
  constexpr int v_element() const { return rows() * v_row() + L; }
  constexpr int m_element() const { return rows() * winograd_panels::of<T>(F).each * L + L; }
  constexpr int for_v() const { return aligned_size<T>(elements * v_element()); }
  constexpr int scratch() const { return for_v() + aligned_size<T>(elements * m_element()); }
  static constexpr int weights(int C, int F) { return aligned_size<T>(elements * winograd_weights_element<T>(C, F)); }

  /// store(m, element, row of m, n tiles, walk, first filter, filters) writes the outputs of a panel.
  template <class Store>
  void operator()(const T* images, int count, const T* u, T* scratch, Store&& store) const {
    T *const v = scratch, *const m = v + for_v();
    const auto cut = winograd_panels::of<T>(F);
    const int all = count * down() * across(), at_once = tiles();
    const std::ptrdiff_t size = std::ptrdiff_t(image.height) * image.width * C, u_element = winograd_weights_element<T>(C, F);
    tile_walk in{down(), across()}, out = in;
    for (int first = 0; first < all; first += at_once) {
      const int n = std::min(at_once, all - first);
      for (int t = 0; t < n;) {
        const int some = std::min(n - t, across() - in.column);
        winograd_inputs<M, Whole>(images + in.image * size, image, in.row, in.column, C, some, v + t * v_row(), v_row(),
                                  v_element());
        in.skip(some), t += some;
      }
      const tile_walk begin = out;
      for (int p = 0; p < cut.count; ++p) {
        const int vectors = cut.width(p), f = p * cut.each * L;
        with_vectors<Widths>(vectors, [&](auto V) {
          const int rows = (n + winograd_rows(V) - 1) / winograd_rows(V) * winograd_rows(V);
          winograd_panel_products<T, V>(elements, v, v_row(), v_element(), rows, u + std::ptrdiff_t(C) * f, u_element, C, m,
                                        m_element());
        });
        out = begin;
        store(m, m_element(), vectors * L, n, out, f, std::min(vectors * L, F - f));
      }
    }
  }
};

/// y (+)= activation(bias + A^T m A) for one tile and n filters: `rows` rows and `columns` columns of its outputs. Whole: n is a
/// multiple of a vector.
template <int M, class Activation, bool Whole, class T>
[[gnu::noinline]] void winograd_store_tile(const T* m, std::ptrdiff_t element, int n, std::type_identity_t<const T*> bias, T* y,
                                           std::ptrdiff_t pixel, std::ptrdiff_t line, int rows, int columns, bool add) {
  constexpr int L = lanes<T>;
  for (int f = 0; f < n; f += L) {
    const int last = std::min(L, n - f);
    const vec<T> b = bias ? load_first(bias + f, last) : vec<T>{};
    const auto put = [&](auto whole) STRATA_INLINE {
      winograd_outputs<M>(m + f, element, [&](int i, const vec<T>(&out)[M]) STRATA_INLINE {
        if (i >= rows) return;
        T* to = y + f + i * line;
        STRATA_UNROLL
        for (int j = 0; j < M; ++j) {
          if (j < columns) {
            const vec<T> sum = out[j] + (add ? detail::load_lanes<whole>(to, last) : b);
            detail::store_lanes<whole>(to, vector_activation<Activation>::template value<T>(sum), last);
          }
          to += pixel;
        }
      });
    };
    if (Whole || last == L)
      put(std::true_type{});
    else if constexpr (!Whole)
      put(std::false_type{});
  }
}

/// winograd_store_tile for n tiles and the filters of a panel.
template <class Activation, class T, int M, unsigned Widths, bool Whole>
void winograd_store(const winograd_convolution<T, M, Widths, Whole>& s, const T* m, std::ptrdiff_t element, int m_row, int n,
                    tile_walk& walk, int first, int filters, std::type_identity_t<const T*> bias, T* y, bool add) {
  const std::ptrdiff_t pixel = s.F, line = pixel * s.out_width, size = line * s.out_height;
  for (int t = 0; t < n; ++t, m += m_row, walk.skip(1))
    winograd_store_tile<M, Activation, Whole>(m, element, filters, bias ? bias + first : nullptr,
                                              y + walk.image * size + M * (walk.row * line + walk.column * pixel) + first, pixel,
                                              line, s.out_height - M * walk.row, s.out_width - M * walk.column, add);
}

}  // namespace strata::simd
