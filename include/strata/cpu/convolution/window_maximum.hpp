// The maximum of a 2x2 window after relu, and its winner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

/// top: relu of the largest of the four pixels, in each lane. id: the winner, which is the index of this pixel, or `dead` where
/// relu returns 0. The pixels are in row order; of equal ones the first wins. If a pixel is nan, top is nan, so that no layer
/// hides it, and the window is dead. MayBeNan: whether the function looks for nan, which doubles the comparisons.
template <class T, bool MayBeNan = true>
STRATA_INLINE inline void best_of_window(const vec<T> (&pixel)[4], vec<T>& top, integers<T>& id) {
  const auto larger = [](vec<T> a, vec<T> b) STRATA_INLINE {
    if constexpr (MayBeNan)
      return integers<T>((b > a) | (b != b));
    else
      return integers<T>(b > a);
  };
  const integers<T> upper_right = larger(pixel[0], pixel[1]), lower_right = larger(pixel[2], pixel[3]);
  const vec<T> upper = upper_right ? pixel[1] : pixel[0], lower = lower_right ? pixel[3] : pixel[2];
  const integers<T> below = larger(upper, lower);
  top = below ? lower : upper;
  if constexpr (MayBeNan)
    top = top <= vec<T>{} ? vec<T>{} : top;
  else
    top = top > vec<T>{} ? top : vec<T>{};
  id = below ? (lower_right ? broadcast_integer<T>(3) : broadcast_integer<T>(2))
             : (upper_right ? broadcast_integer<T>(1) : broadcast_integer<T>(0));
  id = top > vec<T>{} ? id : broadcast_integer<T>(dead);
}

/// Stores the maxima and the winners of one window for n filters. y, winner: (n). Whole: n is a whole vector.
template <class T, bool Whole = true, bool MayBeNan = true>
STRATA_INLINE inline void store_window(const vec<T> (&pixel)[4], T* y, std::int8_t* winner, int n = lanes<T>) {
  vec<T> top;
  integers<T> id;
  best_of_window<T, MayBeNan>(pixel, top, id);
  if constexpr (Whole) {
    store(y, top);
    store_bytes<T>(winner, id);
  } else {
    store_first(y, top, n);
    std::int8_t bytes[lanes<T>];
    store_bytes<T>(bytes, id);
    std::memcpy(winner, bytes, static_cast<std::size_t>(n));
  }
}

/// Pools planes, whose lanes are windows, as those of a convolution with few filters. planes: (4, windows), the four pixels of
/// each window, where `plane` elements separate two planes. The first plane becomes the maxima, the second one the winners, as
/// numbers of type T. The last vector of each plane is computed as a whole.
template <class T>
[[gnu::noinline]] void pool_planes(T* planes, std::ptrdiff_t plane, int windows) {
  for (int i = 0; i < windows; i += lanes<T>, planes += lanes<T>) {
    const vec<T> pixel[4] = {load(planes), load(planes + plane), load(planes + 2 * plane), load(planes + 3 * plane)};
    vec<T> top;
    integers<T> id;
    best_of_window<T>(pixel, top, id);
    store(planes, top), store(planes + plane, __builtin_convertvector(id, vec<T>));
  }
}

}  // namespace strata::simd
