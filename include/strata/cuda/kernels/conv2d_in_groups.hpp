// Convolutions with groups, element by element: a group has few channels, so that no product of matrices pays.
#pragma once
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/kernels/sliding.hpp>
#include <strata/cuda/machine/loops.hpp>

namespace strata::machine {

/// Computes each element of the small images.
template <class S, class T, class From, class Store>
struct to_small_images_in_groups {
  From large;
  const T* w;
  Store to;

  constexpr void operator()(long i) const {
    const int f = int(i % S::filters), first = f / S::group_filters * S::group_channels;
    const auto at = S::small_pixel::number(int(i / S::filters));
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const auto pixel = S::under(at, tap); S::is_inside(pixel))
        for (int c = 0; c < S::group_channels; ++c)
          sum += element_of<S::channels>(large, pixel, first + c) * w[(long(tap) * S::group_channels + c) * S::filters + f];
    to.store(i, sum);
  }
};
/// Computes each element of the large images.
template <class S, class T, class From, class Store>
struct to_large_images_in_groups {
  From small;
  const T* w;
  Store to;

  constexpr void operator()(long i) const {
    const int channel = int(i % S::channels), c = channel % S::group_channels,
              first = channel / S::group_channels * S::group_filters;
    const auto at = S::large_pixel::number(int(i / S::channels));
    T sum{};
    for (int tap = 0; tap < S::taps; ++tap)
      if (const auto window = S::over(at, tap); window.exists)
        for (int f = first; f < first + S::group_filters; ++f)
          sum += element_of<S::filters>(small, window.at, f) * w[(long(tap) * S::group_channels + c) * S::filters + f];
    to.store(i, sum);
  }
};
/// The gradient of each weight, leaf by leaf.
template <class S, class T, class Large, class Small>
struct kernel_gradient_in_groups {
  using value = T;
  static constexpr int threads = 128, neighbours = neighbours_among(S::filters);
  static constexpr long size = long(S::taps) * S::group_channels * S::filters;
  Large large;
  Small small;
  gradient_place<T> dw;
  rows_of_leaves samples;

  constexpr long terms(long sum) const { return samples.size(sum / size) * S::small_pixels; }
  constexpr T term(long sum, long i) const {
    const long at = sum % size;
    const int f = int(at % S::filters), c = int(at / S::filters % S::group_channels),
              tap = int(at / S::filters / S::group_channels);
    const auto window = S::small_pixel::number(int(samples.begin(sum / size)) * S::small_pixels + int(i));
    const auto pixel = S::under(window, tap);
    if (!S::is_inside(pixel)) return T{};
    return element_of<S::channels>(large, pixel, f / S::group_filters * S::group_channels + c) *
           element_of<S::filters>(small, window, f);
  }
  constexpr void store(long sum, T v) const { dw.store(sum / size, sum % size, v); }
};

}  // namespace strata::machine
