// Enlarging images, on vectors of channels.
#pragma once
#include <algorithm>
#include <array>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/up_sampling2d.hpp>

namespace strata {

namespace simd {

/// Repeats each of some pixels with C channels `times` times.
template <class T>
[[gnu::noinline]] void repeat_pixels(const T* x, int pixels, int C, int times, T* y) {
  for (int p = 0; p < pixels; ++p, x += C, y += std::ptrdiff_t(times) * C)
    for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      const vec<T> v = lane.load(x + i);
      for (int t = 0; t < times; ++t) lane.store(y + std::ptrdiff_t(t) * C + i, v);
    });
}

/// For one row of pixels: dx (+)= the sum of dy over `height` rows, `row` elements apart, and `width` pixels.
template <class T>
[[gnu::noinline]] void sum_blocks(const T* dy, std::ptrdiff_t row, int height, int width, int pixels, int C, T* dx, bool add) {
  for (int p = 0; p < pixels; ++p, dx += C, dy += std::ptrdiff_t(width) * C)
    for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      vec<T> sum = broadcast(T(0));
      for (int a = 0; a < height; ++a)
        for (int b = 0; b < width; ++b) sum += lane.load(dy + a * row + std::ptrdiff_t(b) * C + i);
      put<T>(lane, dx + i, sum, add);
    });
}

/// y = low + weight * (high - low).
template <class T>
[[gnu::noinline]] void blend(const T* low, const T* high, T weight, std::ptrdiff_t size, T* y) {
  const vec<T> w = broadcast(weight);
  for_vectors<T>(size, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    const vec<T> from = lane.load(low + i);
    lane.store(y + i, multiply_add(rounded<T>(lane.load(high + i) - from), w, from));
  });
}

/// to += weight * from.
template <class T>
[[gnu::noinline]] void add_weighted(const T* from, T weight, std::ptrdiff_t size, T* to) {
  const vec<T> w = broadcast(weight);
  for_vectors<T>(size, [&](std::ptrdiff_t i, auto lane)
                           STRATA_INLINE { lane.store(to + i, multiply_add(lane.load(from + i), w, lane.load(to + i))); });
}

/// An enlarged image; `down` and `across` have an entry for each row and column of the output.
struct blended_image {
  const strata::detail::blended_pixel *down, *across;
  int height, width, out_height, out_width, channels;
};

/// Blends rows first, then columns; `line` has room for one row of x.
template <class T>
[[gnu::noinline]] void blend_image(const blended_image& at, const T* x, T* line, T* y) {
  const std::ptrdiff_t C = at.channels, in_row = at.width * C;
  for (int i = 0; i < at.out_height; ++i) {
    const strata::detail::blended_pixel& d = at.down[i];
    blend(x + d.low * in_row, x + d.high * in_row, T(d.weight), in_row, line);
    for (int j = 0; j < at.out_width; ++j, y += C) {
      const strata::detail::blended_pixel& a = at.across[j];
      blend(line + a.low * C, line + a.high * C, T(a.weight), C, y);
    }
  }
}

/// dx += the transpose of blend_image applied to dy.
template <class T>
[[gnu::noinline]] void blended_gradient(const blended_image& at, const T* dy, T* line, T* dx) {
  const std::ptrdiff_t C = at.channels, in_row = at.width * C;
  for (int i = 0; i < at.out_height; ++i) {
    std::fill_n(line, in_row, T{});
    for (int j = 0; j < at.out_width; ++j, dy += C) {
      const strata::detail::blended_pixel& a = at.across[j];
      add_weighted(dy, T(1 - a.weight), C, line + a.low * C);
      add_weighted(dy, T(a.weight), C, line + a.high * C);
    }
    const strata::detail::blended_pixel& d = at.down[i];
    add_weighted(line, T(1 - d.weight), in_row, dx + d.low * in_row);
    add_weighted(line, T(d.weight), in_row, dx + d.high * in_row);
  }
}

}  // namespace simd

namespace core {
/// x: (count, H, W, C); y: (count, height * H, width * W, C).
template <up_sampling_settings S, class P, shape In>
struct kernel<cpu, up_sampling<S>, P, In> {
  using T = typename P::value_type;
  static constexpr shape Out = up_sampling<S>::output_shape(In).value;
  static constexpr int C = In[2], in_row = In[1] * C, out_row = Out[1] * C;
  static constexpr kernel_traits traits{.scratch = S.bilinear ? in_row : 0, .reads_input = false};

  static constexpr auto down = [] {
    std::array<strata::detail::blended_pixel, std::size_t(Out[0])> at{};
    for (int i = 0; i < Out[0]; ++i) at[std::size_t(i)] = up_sampling<S>::row(In, i);
    return at;
  }();
  static constexpr auto across = [] {
    std::array<strata::detail::blended_pixel, std::size_t(Out[1])> at{};
    for (int i = 0; i < Out[1]; ++i) at[std::size_t(i)] = up_sampling<S>::column(In, i);
    return at;
  }();
  static constexpr simd::blended_image image{down.data(), across.data(), In[0], In[1], Out[0], Out[1], C};

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* const x = o.x[0] + std::ptrdiff_t(n) * In.size();
      T* const y = o.y + std::ptrdiff_t(n) * Out.size();
      if constexpr (S.bilinear)
        simd::blend_image(image, x, o.scratch, y);
      else
        for (int r = 0; r < In[0]; ++r) {
          T* const first = y + std::ptrdiff_t(r) * S.sampling_height * out_row;
          simd::repeat_pixels(x + std::ptrdiff_t(r) * in_row, In[1], C, S.sampling_width, first);
          simd::copy_rows(first, 0, first + out_row, out_row, S.sampling_height - 1, out_row);
        }
    }
  }

  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n) {
      const T* const dy = o.dy + std::ptrdiff_t(n) * Out.size();
      T* const dx = o.dx[0] + std::ptrdiff_t(n) * In.size();
      if constexpr (S.bilinear) {
        if (!o.adds_dx[0]) std::fill_n(dx, In.size(), T{});
        simd::blended_gradient(image, dy, o.scratch, dx);
      } else {
        for (int r = 0; r < In[0]; ++r)
          simd::sum_blocks(dy + std::ptrdiff_t(r) * S.sampling_height * out_row, out_row, S.sampling_height, S.sampling_width,
                           In[1], C, dx + std::ptrdiff_t(r) * in_row, o.adds_dx[0]);
      }
    }
  }
};
}  // namespace core

}  // namespace strata
