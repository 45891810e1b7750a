// The sparse weight gradient and the bias gradient of convolution + relu + max pooling.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/products/image_product.hpp>

namespace strata::simd {

/// db (+)= the sum of dy over the living windows of one sample, for one vector of `Lanes` filters. dy, winner: (windows, F);
/// db: (F). All three begin with the first of these filters.
template <class T, int Lanes>
[[gnu::noinline]] void pooled_bias(const T* dy, const std::int8_t* winner, int windows, int filters, T* db, bool add) {
  vec<T> sum = add ? load<Lanes>(db) : vec<T>{};
  for (int i = 0; i < windows; ++i, dy += filters, winner += filters)
    sum += load_bytes<T, Lanes>(winner) < broadcast_integer<T>(dead) ? load<Lanes>(dy) : vec<T>{};
  store<Lanes>(db, sum);
}

/// offset: for each winner the position in x of the patch under it. corner: (windows), the position in x of each window;
/// winner, offset: (windows, F). Where a window is dead, its offset is its corner.
[[gnu::noinline]] inline void winner_offsets(const std::int8_t* winner, const int* corner, std::int32_t* offset,
                                             pooled_image image) {
  using I = integers<float>;
  constexpr int L = lanes<float>;
  const int right = image.channels, down = int(image.x_row);
  for (int window = 0; window < image.windows; ++window, winner += image.filters, offset += image.filters) {
    const int start = corner[window];
    const auto write = [&](int f, I q, int count) STRATA_INLINE {
      const I at = start + (q & 1) * right + (q >> 1 & 1) * down;  // pixel q of the window
      std::memcpy(offset + f, &at, sizeof(std::int32_t) * std::size_t(count));
    };
    int f = 0;
    for (; f + L <= image.filters; f += L) write(f, load_bytes<float>(winner + f), L);
    if (f < image.filters) write(f, load_first_bytes<float>(winner + f, image.filters - f), image.filters - f);
  }
}

/// The weight gradient of one sample, added to a block of Rows kernel rows x V vectors, the last of which has Last lanes. For
/// each filter, its block stays in registers while its living windows pass. x: the first element that the block's first vector
/// reads; dy, offset: (windows, F); alive: from alive_windows; block: (F, KH, row_size), from the first vector of the block on,
/// where filter_size elements separate two filters.
template <class T, int Rows, int V, int Last>
[[gnu::noinline]] void pooled_weights(const T* x, const T* dy, const std::int32_t* offset, const std::uint32_t* alive, T* block,
                                      std::ptrdiff_t row_size, std::ptrdiff_t filter_size, pooled_image image) {
  constexpr int L = lanes<T>;
  const int words = (image.windows + 31) / 32;
  for (int f = 0; f < image.filters; ++f, block += filter_size) {
    vec<T> sum[Rows * V];
    in_grid<Rows, V>(block, L, row_size, [&](auto i, const T* p) STRATA_INLINE { sum[i] = load(p); });
    for (int word = 0; word < words; ++word)
      for (std::uint32_t bits = alive[word * image.filters + f]; bits != 0; bits &= bits - 1) {
        const int at = (word * 32 + std::countr_zero(bits)) * image.filters + f;
        vec<T> g = broadcast(dy[at]);
        in_grid<Rows, V>(x + offset[at], L, image.x_row, [&](auto i, const T* p) STRATA_INLINE {
          sum[i] = multiply_add(load_end<Last>(i % V + 1 == V, p), g, sum[i]);
        });
      }
    in_grid<Rows, V>(block, L, row_size, [&](auto i, T* p) STRATA_INLINE { store(p, sum[i]); });
  }
}

}  // namespace strata::simd
