// The sparse input gradient of convolution + relu + max pooling, and the layout of its weights.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <strata/cpu/convolution/frame.hpp>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// The input gradient of one sample for one vector of channels, added to dx. w: (F, taps, lanes); dy: (windows, F); alive: from
/// alive_filters; dx: (rows, columns, lanes), where dx_row elements separate two rows and dx_pixel elements two pixels.
template <class T, int KH, int KW>
[[gnu::noinline]] void pooled_input(const T* w, const T* dy, const std::uint64_t* alive, T* dx, std::ptrdiff_t dx_pixel,
                                    std::ptrdiff_t dx_row, pooled_image image) {
  constexpr int L = lanes<T>, taps = KH * KW, width = KW + 1;
  // Which pixels of dx stay in registers. patch == 2: all under a window. patch == 1: those under the upper two outputs of the
  // window, then those under its lower two. patch == 0: `rows` rows of those under one output.
  constexpr int patch = (KH + 1) * width + 2 <= registers ? 2 : KH * width + 2 <= registers ? 1 : 0;
  constexpr int rows = taps + 2 <= registers ? KH : 1;
  const int words = filter_words(image.filters);
  const auto each_filter = [&](const std::uint64_t* bits, auto&& f) STRATA_INLINE {
    for (int word = 0; word < words; ++word)
      for (std::uint64_t b = bits[word]; b != 0; b &= b - 1) f(word * 64 + std::countr_zero(b));
  };
  int column = 0;
  for (int window = 0; window < image.windows; ++window, dy += image.filters, alive += 4 * words) {
    T* const corner = dx + column * 2 * dx_pixel;
    if (++column == image.across) column = 0, dx += 2 * dx_row;
    if constexpr (patch > 0) {
      unroll<2 / patch>([&](auto half) STRATA_INLINE {
        constexpr int height = KH + patch - 1;
        T* const to = corner + half * dx_row;
        vec<T> sum[height * width];
        in_grid<height, width>(to, dx_pixel, dx_row, [&](auto i, const T* p) STRATA_INLINE { sum[i] = load(p); });
        unroll<2 * patch>([&](auto q) STRATA_INLINE {
          each_filter(alive + (2 * half + q) * words, [&](int f) STRATA_INLINE {
            const T* from = w + std::ptrdiff_t(f) * taps * L;
            vec<T> g = broadcast(dy[f]);
            STRATA_UNROLL
            for (int t = 0; t < taps; ++t) {
              const int i = (t / KW + q / 2) * width + t % KW + q % 2;
              sum[i] = multiply_add(load(from + t * L), g, sum[i]);
            }
          });
        });
        in_grid<height, width>(to, dx_pixel, dx_row, [&](auto i, T* p) STRATA_INLINE { store(p, sum[i]); });
      });
    } else {
      for (int q = 0; q < 4; ++q)
        for (int row = 0; row < KH; row += rows) {
          T* const to = corner + (q / 2 + row) * dx_row + q % 2 * dx_pixel;
          vec<T> sum[rows * KW];
          in_grid<rows, KW>(to, dx_pixel, dx_row, [&](auto t, const T* p) STRATA_INLINE { sum[t] = load(p); });
          each_filter(alive + q * words, [&](int f) STRATA_INLINE {
            const T* from = w + (std::ptrdiff_t(f) * taps + row * KW) * L;
            vec<T> g = broadcast(dy[f]);
            STRATA_UNROLL
            for (int t = 0; t < rows * KW; ++t) sum[t] = multiply_add(load(from + t * L), g, sum[t]);
          });
          in_grid<rows, KW>(to, dx_pixel, dx_row, [&](auto t, T* p) STRATA_INLINE { store(p, sum[t]); });
        }
    }
  }
}

/// dx (+)= the image in a frame, for n <= lanes channels. from: (outer_height, outer_width, lanes); dx: (height, width,
/// channels), from the first of these channels on.
template <class T>
[[gnu::noinline]] void take_from_frame(const T* from, const frame& f, T* dx, int channels, int n, bool add) {
  constexpr int L = lanes<T>;
  for (int i = 0; i < f.height; ++i) {
    const T* line = from + (std::ptrdiff_t(f.top + i) * f.outer_width + f.left) * L;
    for (int j = 0; j < f.width; ++j, line += L, dx += channels) {
      if (n == L)
        store(dx, add ? load(dx) + load(line) : load(line));
      else
        store_first(dx, add ? load_first(dx, n) + load(line) : load(line), n);
    }
  }
}

/// The weights of pooled_input for all channels. w: (taps, C, F); to: (vectors of channels, F, taps, lanes), with zeros after
/// the last channel.
template <class T>
[[gnu::noinline]] void pooled_input_weights(const T* w, int taps, int C, int F, T* to) {
  constexpr int L = lanes<T>;
  for (int c = 0; c < C; c += L, to += std::ptrdiff_t(F) * taps * L)
    for (int t = 0; t < taps; ++t)
      transpose(w + (std::ptrdiff_t(t) * C + c) * F, F, to + t * L, std::ptrdiff_t(taps) * L, std::min(L, C - c), F, true);
}

}  // namespace strata::simd
