// The direct forward pass of convolution + relu + max pooling: a product whose rows are windows.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/window_maximum.hpp>
#include <strata/cpu/products/gemm.hpp>

namespace strata::simd {

/// The forward pass of a panel of V vectors of filters, which begins with filter `column` and whose last vector has Last lanes.
/// Row i of the product is window i: p.a_rows has its upper left pixel. A register block has the four pixels of `Windows`
/// windows. p.c: (windows, F), the outputs; winner: (windows, F).
template <class T, int Windows, int V, int Last>
[[gnu::noinline]] void pooled_panel(const product<T>& p, const pooled_image& image, std::int8_t* winner, int column) {
  constexpr int L = lanes<T>, R = 4 * Windows;
  const std::ptrdiff_t right = image.channels, down = image.x_row;
  const T* const bias = p.bias ? p.bias + column : detail::zeros<T>;
  detail::row_walk walk{p.a_rows};
  for (int window = 0; window < p.rows; window += Windows) {
    const T* corner[Windows];
    const T* a[R];
    detail::next_rows(corner, p.a, walk, p.rows - window);
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) a[r] = corner[r / 4] + (r % 4 / 2 == 1 ? down : 0) + (r % 2 == 1 ? right : 0);
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = load_end<Last>(i % V + 1 == V, bias + i % V * L);
    detail::accumulate<R, V, Last>(sum, a, p, p.b + column);
    unroll<Windows * V>([&](auto i) STRATA_INLINE {
      constexpr int w = i / V, v = i % V;
      if (window + w < p.rows) {
        const std::ptrdiff_t to = std::ptrdiff_t(window + w) * image.filters + column + v * L;
        const vec<T> pixel[4] = {sum[4 * w][v], sum[4 * w + 1][v], sum[4 * w + 2][v], sum[4 * w + 3][v]};
        store_window<T, (v + 1 < V || Last == L)>(pixel, p.c + to, winner + to, Last);
      }
    });
  }
}

/// How many windows a register block of so many vectors takes: two where they fit.
constexpr int windows_of(int vectors) { return std::max(1, std::min(2, ((registers - 1) / vectors - 1) / 4)); }

/// The forward pass of one sample, panel by panel. p.a: x; p.b: (taps * C, F); p.c: (windows, F); winner: (windows, F).
template <int F, class T>
void pooled_product(const product<T>& p, const pooled_image& image, std::int8_t* winner) {
  using cut = panels<T, F>;
  constexpr int L = lanes<T>, each = cut::each, rest = cut::rest;
  for (int i = 0; i + 1 < cut::count; ++i) pooled_panel<T, windows_of(each), each, L>(p, image, winner, i * each * L);
  pooled_panel<T, windows_of(rest), rest, cut::last_lanes>(p, image, winner, (cut::count - 1) * each * L);
}

}  // namespace strata::simd
