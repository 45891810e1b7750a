// The weight gradient of convolution + relu + max pooling where x has one channel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/convolution/window_patch.hpp>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// The weight gradient and the bias gradient of one sample for one vector of `Lanes` filters. Each lane follows the winners of
/// its filter. dy, winner: (windows, F); dw: (KH, KW, F); db: (F), or null. All four begin with the first of these filters.
/// add: whether the gradients are added to dw and db.
template <class T, int KH, int KW, int Lanes>
[[gnu::noinline]] void one_channel_weights(const T* x, const T* dy, const std::int8_t* winner, T* dw, T* db, bool add,
                                           pooled_image image) {
  constexpr int taps = KH * KW;
  vec<T> sum[taps], bias_sum = db && add ? load<Lanes>(db) : vec<T>{};
  STRATA_UNROLL
  for (int t = 0; t < taps; ++t) {
    sum[t] = add ? load<Lanes>(dw + t * image.filters) : vec<T>{};
  }
  for (int top = 0, window = 0; window < image.windows; ++top)
    for (int column = 0; column < image.across; ++column, ++window) {
      const T* const corner = x + 2 * top * image.x_row + 2 * column;
      const std::ptrdiff_t at = std::ptrdiff_t(window) * image.filters;
      const vec<T> g = load<Lanes>(dy + at);
      const integers<T> id = load_bytes<T, Lanes>(winner + at);
#if defined(__AVX2__)
      if constexpr (KH == 3 && KW == 3 && sizeof(T) == 4) {
        const vec<T> alive = id < broadcast_integer<T>(dead) ? g : vec<T>{};
        bias_sum += alive;
        const window_patch patch(corner, image.x_row, id);
        STRATA_UNROLL
        for (int t = 0; t < taps; ++t) sum[t] = multiply_add(patch.tap(t / KW, t % KW), alive, sum[t]);
        continue;
      }
#endif
      STRATA_UNROLL
      for (int q = 0; q < 4; ++q) {
        const vec<T> part = id == broadcast_integer<T>(q) ? g : vec<T>{};
        bias_sum += part;
        in_grid<KH, KW>(corner + q / 2 * image.x_row + q % 2, 1, image.x_row,
                        [&](auto t, const T* p) STRATA_INLINE { sum[t] = multiply_add(broadcast(*p), part, sum[t]); });
      }
    }
  // A sum whose products underflow may be -0. Adding 0 makes it 0, as it is in kernels that multiply losing pixels by zero.
  STRATA_UNROLL
  for (int t = 0; t < taps; ++t) {
    store<Lanes>(dw + t * image.filters, sum[t] + vec<T>{});
  }
  if (db) store<Lanes>(db, bias_sum);
}

}  // namespace strata::simd
