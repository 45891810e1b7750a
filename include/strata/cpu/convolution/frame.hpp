// An image in a frame of zeros, so that no tap of a window needs a check.
#pragma once
#include <cstddef>
#include <cstring>

namespace strata::simd {

/// The position of the image in its frame. No frame is needed if the image fills it.
struct frame {
  int height, width, top, left, outer_height, outer_width;
  constexpr bool needed() const { return outer_height != height || outer_width != width; }
  constexpr int pixels() const { return outer_height * outer_width; }
};

template <class T>
[[gnu::noinline]] void put_into_frame(const T* image, const frame& f, int channels, T* to) {
  const auto bytes = [&](std::ptrdiff_t pixels) {
    return static_cast<std::size_t>(pixels) * static_cast<std::size_t>(channels) * sizeof(T);
  };
  const auto zeros = [&](std::ptrdiff_t pixels) {
    std::memset(to, 0, bytes(pixels));
    to += pixels * channels;
  };
  const int right = f.outer_width - f.left - f.width;
  zeros(std::ptrdiff_t(f.top) * f.outer_width + f.left);
  for (int i = 0; i < f.height; ++i, image += std::ptrdiff_t(f.width) * channels) {
    std::memcpy(to, image, bytes(f.width));
    to += std::ptrdiff_t(f.width) * channels;
    if (i + 1 < f.height) zeros(right + f.left);
  }
  zeros(right + std::ptrdiff_t(f.outer_height - f.top - f.height) * f.outer_width);
}

}  // namespace strata::simd
