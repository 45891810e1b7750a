// The forward pass of convolution + relu + max pooling where x has one channel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/window_maximum.hpp>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

/// The forward pass of one sample for V vectors of filters, the last of which has Last lanes. w: (KH, KW, F); bias: (F), or
/// null; y, winner: (windows, F). All four begin with the first of these filters. The weights stay in registers if there are
/// enough registers. Each pixel of the (KH + 1) x (KW + 1) patch under a window is broadcast once, for all taps of all four
/// outputs that read it. Returns false if a sum is nan, or if infinities of both signs occur. Then the results are right only
/// with MayBeNan.
template <class T, int KH, int KW, int V, int Last, bool MayBeNan>
[[gnu::noinline]] bool one_channel_forward(const T* x, const T* w, const T* bias, T* y, std::int8_t* winner, pooled_image image) {
  constexpr int L = lanes<T>, taps = KH * KW, width = KW + 1;
  constexpr bool resident = taps * V + 4 * V + 1 <= registers;
  const auto weight = [&](int t, int v) STRATA_INLINE { return load_end<Last>(v + 1 == V, w + t * image.filters + v * L); };
  vec<T> held[resident ? taps : 1][V], b[V];
  if constexpr (resident) {
    STRATA_UNROLL
    for (int t = 0; t < taps; ++t) {
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) {
        held[t][v] = weight(t, v);
        keep(held[t][v]);
      }
    }
  }
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    b[v] = bias ? load_end<Last>(v + 1 == V, bias + v * L) : vec<T>{};
  }
  vec<T> all{};
  for (int top = 0, window = 0; window < image.windows; ++top)
    for (int column = 0; column < image.across; ++column, ++window) {
      const T* const corner = x + 2 * top * image.x_row + 2 * column;
      const T* line[KH + 1];
      STRATA_UNROLL
      for (int i = 0; i < KH + 1; ++i) line[i] = corner + i * image.x_row;
      vec<T> sum[V][4];
      STRATA_UNROLL
      for (int i = 0; i < 4 * V; ++i) sum[i / 4][i % 4] = b[i / 4];
      // The pixels of the patch are the outermost loop. So each sum adds its taps row by row, the order of all other kernels.
      STRATA_UNROLL
      for (int i = 0; i < (KH + 1) * width; ++i) {
        vec<T> pixel = broadcast(line[i / width][i % width]);
        keep(pixel);
        STRATA_UNROLL
        for (int q = 0; q < 4; ++q) {
          const int kh = i / width - q / 2, kw = i % width - q % 2;
          if (kh >= 0 && kh < KH && kw >= 0 && kw < KW) {
            STRATA_UNROLL
            for (int v = 0; v < V; ++v) {
              if constexpr (resident)
                sum[v][q] = multiply_add(pixel, held[kh * KW + kw][v], sum[v][q]);
              else
                sum[v][q] = multiply_add(pixel, weight(kh * KW + kw, v), sum[v][q]);
            }
          }
        }
      }
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) {
        const std::ptrdiff_t to = std::ptrdiff_t(window) * image.filters + v * L;
        all += (sum[v][0] + sum[v][1]) + (sum[v][2] + sum[v][3]);
        if (Last == L || v + 1 < V)
          store_window<T, true, MayBeNan>(sum[v], y + to, winner + to, Last);
        else
          store_window<T, Last == L, MayBeNan>(sum[v], y + to, winner + to, Last);
      }
    }
  const integers<T> nan = all != all;
  bool found = false;
  for (int i = 0; i < L; ++i) found |= nan[i] != 0;
  return !found;
}

}  // namespace strata::simd
