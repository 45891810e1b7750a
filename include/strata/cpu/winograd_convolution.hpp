// 3x3 convolutions of several images by Winograd's F(2x2, 3x3).
#pragma once
#include <algorithm>
#include <strata/cpu/frame.hpp>
#include <strata/cpu/winograd.hpp>

namespace strata::simd {

/// Goes through the tiles of several images, row by row.
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

/// A 3x3 convolution of several images with C channels and F filters, by tiles: as many at a time as leave their transforms in
/// the first-level cache if there are few channels, in the second-level cache while all weights pass if there are many.
template <class T>
struct winograd_convolution {
  int C, F, out_height, out_width;
  frame x;  // what each image is put into; covers whole tiles

  static constexpr int L = lanes<T>;
  static constexpr winograd_convolution of(int C, int F, int height, int width, int top, int left, int out_height,
                                           int out_width) {
    const int outer_height = std::max(top + height, (out_height + 1) / 2 * 2 + 2),
              outer_width = std::max(left + width, (out_width + 1) / 2 * 2 + 2);
    return {C, F, out_height, out_width, {height, width, top, left, outer_height, outer_width}};
  }
  constexpr int down() const { return (out_height + 1) / 2; }
  constexpr int across() const { return (out_width + 1) / 2; }
  constexpr int tiles() const {
    const auto cut = winograd_panels::of<T>(F);
    const int rows = winograd_rows(cut.each);
    const int numbers = 16 * (padded<T>(C) + cut.each * L), fitting = C + F <= 64 ? 12 : std::clamp(320 * 1024 / numbers, 12, 72);
    return (fitting + rows - 1) / rows * rows;
  }
  /// Rows that the last panel may round up to.
  constexpr int rows() const { return tiles() + 12; }
  // One vector more than needed: elements must not be a power of two apart.
  constexpr int v_row() const { return padded<T>(C); }
  constexpr int v_element() const { return rows() * v_row() + L; }
  constexpr int m_element() const { return rows() * winograd_panels::of<T>(F).each * L + L; }
  constexpr int for_frame() const { return x.needed() ? aligned_size<T>(x.pixels() * C) : 0; }
  constexpr int scratch() const { return for_frame() + aligned_size<T>(16 * v_element()) + aligned_size<T>(16 * m_element()); }
  static constexpr int weights(int C, int F) { return aligned_size<T>(16 * C * padded<T>(F)); }

  /// store(m, element, n tiles, walk, first filter, filters, row of m) writes the outputs of a panel.
  template <class Store>
  void operator()(const T* images, int count, const T* u, T* scratch, Store&& store) const {
    T *const v = scratch + for_frame(), *const m = v + aligned_size<T>(16 * v_element());
    const auto cut = winograd_panels::of<T>(F);
    const int all = count * down() * across(), at_once = tiles();
    const std::ptrdiff_t x_row = std::ptrdiff_t(x.outer_width) * C, size = std::ptrdiff_t(x.height) * x.width * C;
    const std::ptrdiff_t u_element = std::ptrdiff_t(C) * cut.vectors * L;
    tile_walk in{down(), across()}, out = in;
    for (int first = 0; first < all; first += at_once) {
      const int n = std::min(at_once, all - first);
      for (int t = 0; t < n;) {
        const int some = std::min(n - t, across() - in.column);
        const T* image = images + in.image * size;
        if (x.needed()) {
          if (in.row == 0 && in.column == 0) put_into_frame(image, x, C, scratch);
          image = scratch;
        }
        winograd_inputs(image + 2 * (in.row * x_row + in.column * C), x_row, C, some, v + t * v_row(), v_row(), v_element());
        in.skip(some), t += some;
      }
      const tile_walk begin = out;
      for (int p = 0; p < cut.count; ++p) {
        const int vectors = cut.width(p), f = p * cut.each * L;
        with_vectors(vectors, [&](auto V) {
          const int rows = (n + winograd_rows(V) - 1) / winograd_rows(V) * winograd_rows(V);
          winograd_panel_products<T, V>(v, v_row(), v_element(), rows, u + std::ptrdiff_t(C) * f, u_element, C, m, m_element());
        });
        out = begin;
        store(m, m_element(), vectors * L, n, out, f, std::min(vectors * L, F - f));
      }
    }
  }
};

/// y (+)= activation(bias + A^T m A) for `n` tiles and the filters of a panel.
template <class T, class Activation>
[[gnu::noinline]] void winograd_store(const winograd_convolution<T>& s, const T* m, std::ptrdiff_t element, int m_row, int n,
                                      tile_walk& walk, int first, int filters, const T* bias, T* y, bool add) {
  constexpr int L = lanes<T>;
  const std::ptrdiff_t F = s.F, y_row = F * s.out_width;
  for (int t = 0; t < n; ++t, m += m_row) {
    T* const corner =
        y + ((std::ptrdiff_t(walk.image) * s.out_height + 2 * walk.row) * s.out_width + 2 * walk.column) * F + first;
    const bool right = 2 * walk.column + 1 < s.out_width, below = 2 * walk.row + 1 < s.out_height;
    for (int f = 0; f < filters; f += L) {
      vec<T> out[4];
      winograd_outputs<T>(m + f, element, out);
      T* const to[4] = {corner + f, corner + f + F, corner + f + y_row, corner + f + y_row + F};
      const int lanes_left = filters - f;
      const auto put = [&](auto q) STRATA_INLINE {
        if (lanes_left >= L) {
          const vec<T> sum = bias ? out[q] + load(bias + first + f) : add ? out[q] + load(to[q]) : out[q];
          store(to[q], vector_activation<Activation>::template value<T>(sum));
        } else {
          const vec<T> sum = bias  ? out[q] + load_first(bias + first + f, lanes_left)
                             : add ? out[q] + load_first(to[q], lanes_left)
                                   : out[q];
          store_first(to[q], vector_activation<Activation>::template value<T>(sum), lanes_left);
        }
      };
      put(std::integral_constant<int, 0>{});
      if (right) put(std::integral_constant<int, 1>{});
      if (below) put(std::integral_constant<int, 2>{});
      if (right && below) put(std::integral_constant<int, 3>{});
    }
    walk.skip(1);
  }
}

}  // namespace strata::simd
