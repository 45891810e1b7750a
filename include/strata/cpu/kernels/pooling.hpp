// Max and average pooling on vectors of channels, for any window, stride and padding. Backward goes through the pixels of the
// input: each gathers from the windows that cover it, so nothing is zeroed first and every sum has one order.
#pragma once
#include <algorithm>
#include <array>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/small_indices.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>

namespace strata {

namespace simd {

/// Elements [begin, end) of one axis that a window covers, or windows [begin, end) that cover an element.
struct index_range {
  int begin, end;
};

/// One axis of a pooling layer.
struct pooled_axis {
  int in, out, stride, padding;
  const index_range *under, *covering;
};

template <window_axis A>
struct pooled_axis_tables {
  static constexpr auto under = [] {
    std::array<index_range, std::size_t(A.out())> r{};
    for (int i = 0; i < A.out(); ++i) r[std::size_t(i)] = {std::max(A.begin(i), 0), std::min(A.begin(i) + A.kernel, A.in)};
    return r;
  }();
  static constexpr auto covering = [] {
    std::array<index_range, std::size_t(A.in)> r{};
    for (int e = 0; e < A.in; ++e) {
      const int from = e + A.padding() - A.kernel + 1;
      r[std::size_t(e)] = {from <= 0 ? 0 : (from + A.stride - 1) / A.stride, std::min((e + A.padding()) / A.stride + 1, A.out())};
    }
    return r;
  }();
  static constexpr pooled_axis axis{A.in, A.out(), A.stride, A.padding(), under.data(), covering.data()};
};

/// The image of a pooling layer. A winner is stored as its tap: row * `width` + column.
struct pooled_pixels {
  pooled_axis down, across;
  int channels, width, height;

  bool disjoint() const { return down.stride >= height && across.stride >= width; }
  /// True if windows do not overlap and cover every pixel.
  bool covered() const {
    return down.stride == height && across.stride == width && down.under[down.out - 1].end == down.in &&
           across.under[across.out - 1].end == across.in;
  }
  int tap(int row, int column, int i, int j) const {
    return (row + down.padding - i * down.stride) * width + column + across.padding - j * across.stride;
  }
};

/// Calls f(row, column) for height x width taps, in order. Windows of usual sizes need no loop.
template <class F>
STRATA_INLINE inline void for_taps(int height, int width, F&& f) {
  for (int a = 0; a < height; ++a)
    for (int b = 0; b < width; ++b) f(a, b);
}
template <int N, class F>
STRATA_INLINE inline void for_taps(std::integral_constant<int, N>, std::integral_constant<int, N>, F&& f) {
  STRATA_UNROLL
  for (int t = 0; t < N * N; ++t) f(t / N, t % N);
}
/// Calls f(height, width), with constants for windows of usual sizes.
template <class F>
STRATA_INLINE inline void with_window(int height, int width, F&& f) {
  if (height == 2 && width == 2)
    f(std::integral_constant<int, 2>{}, std::integral_constant<int, 2>{});
  else if (height == 3 && width == 3)
    f(std::integral_constant<int, 3>{}, std::integral_constant<int, 3>{});
  else
    f(height, width);
}

/// How winners are stored: as bytes, or, if a window has too many taps, as integers of the size of T.
template <class T, bool Bytes>
struct winner_of {
  using element = std::conditional_t<Bytes, std::int8_t, typename detail::vector_of<T>::integer_element>;

  template <class Lanes>
  STRATA_INLINE static integers<T> load(const element* p, Lanes lane) {
    if constexpr (Bytes)
      return load_indices<T>(p, lane);
    else
      return (integers<T>)lane.load(reinterpret_cast<const T*>(p));
  }
  template <class Lanes>
  STRATA_INLINE static void store(element* p, integers<T> v, Lanes lane) {
    if constexpr (Bytes)
      store_indices<T>(p, v, lane);
    else
      lane.store(reinterpret_cast<T*>(p), (vec<T>)v);
  }
};

/// The part of the image that a window covers.
struct window_pixels {
  std::ptrdiff_t corner;
  int first_tap, height, width;
};
inline window_pixels under_window(const pooled_pixels& p, int i, int j) {
  const index_range rows = p.down.under[i], columns = p.across.under[j];
  return {(std::ptrdiff_t(rows.begin) * p.across.in + columns.begin) * p.channels, p.tap(rows.begin, columns.begin, i, j),
          rows.end - rows.begin, columns.end - columns.begin};
}

/// y and winners of one sample. Of equal elements the first one wins; nan wins over all.
template <class T, bool Bytes>
[[gnu::noinline]] void pool_largest(const T* x, const pooled_pixels& p, T* y, typename winner_of<T, Bytes>::element* winner) {
  const std::ptrdiff_t C = p.channels, line = p.across.in * C;
  for (int i = 0; i < p.down.out; ++i)
    for (int j = 0; j < p.across.out; ++j, y += C, winner += C) {
      const window_pixels w = under_window(p, i, j);
      with_window(w.height, w.width, [&](auto height, auto width) STRATA_INLINE {
        for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
          const T* const corner = x + w.corner + c;
          vec<T> top = lane.load(corner);
          integers<T> id = broadcast_integer<T>(w.first_tap);
          for_taps(height, width, [&](auto a, auto b) STRATA_INLINE {
            const vec<T> v = lane.load(corner + a * line + b * C);
            const integers<T> larger = (v > top) | (v != v);
            top = larger ? v : top, id = larger ? broadcast_integer<T>(w.first_tap + a * p.width + b) : id;
          });
          lane.store(y + c, top);
          winner_of<T, Bytes>::store(winner + c, id, lane);
        });
      });
    }
}

/// Calls f(window, its row, its column) STRATA_INLINE for the windows that cover a pixel, in order.
template <class F>
STRATA_INLINE inline void for_covering(const pooled_pixels& p, int row, int column, F&& f) {
  const index_range rows = p.down.covering[row], columns = p.across.covering[column];
  for (int i = rows.begin; i < rows.end; ++i)
    for (int j = columns.begin; j < columns.end; ++j) f(std::ptrdiff_t(i) * p.across.out + j, i, j);
}

/// For windows that do not overlap: f(window) STRATA_INLINE returns g(row, column, lane), which computes the gradient of that
/// pixel of the window.
template <class T, class F>
STRATA_INLINE inline void for_disjoint_windows(const pooled_pixels& p, T* dx, bool add, F&& f) {
  const std::ptrdiff_t C = p.channels, line = p.across.in * C;
  if (!add && !p.covered()) std::fill_n(dx, p.down.in * line, T{});
  std::ptrdiff_t window = 0;
  for (int i = 0; i < p.down.out; ++i)
    for (int j = 0; j < p.across.out; ++j, ++window) {
      const window_pixels w = under_window(p, i, j);
      with_window(w.height, w.width, [&](auto height, auto width) STRATA_INLINE {
        for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
          const auto of_pixel = f(w, window * C + c, lane);
          T* const corner = dx + w.corner + c;
          for_taps(height, width,
                   [&](auto a, auto b) STRATA_INLINE { put<T>(lane, corner + a * line + b * C, of_pixel(a, b), add); });
        });
      });
    }
}

template <class T, bool Bytes>
[[gnu::noinline]] void largest_gradient(const T* dy, const typename winner_of<T, Bytes>::element* winner, const pooled_pixels& p,
                                        T* dx, bool add) {
  const std::ptrdiff_t C = p.channels;
  if (p.disjoint())
    return for_disjoint_windows<T>(p, dx, add, [&](const window_pixels& w, std::ptrdiff_t at, auto lane) STRATA_INLINE {
      const vec<T> g = lane.load(dy + at);
      const integers<T> won = winner_of<T, Bytes>::load(winner + at, lane);
      return [&p, &w, g, won](int a, int b)
                 STRATA_INLINE { return won == broadcast_integer<T>(w.first_tap + a * p.width + b) ? g : broadcast(T(0)); };
    });
  for (int row = 0; row < p.down.in; ++row)
    for (int column = 0; column < p.across.in; ++column, dx += C)
      for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
        vec<T> sum = broadcast(T(0));
        for_covering(p, row, column, [&](std::ptrdiff_t window, int i, int j) STRATA_INLINE {
          const integers<T> won = winner_of<T, Bytes>::load(winner + window * C + c, lane);
          sum += won == broadcast_integer<T>(p.tap(row, column, i, j)) ? lane.load(dy + window * C + c) : broadcast(T(0));
        });
        put<T>(lane, dx + c, sum, add);
      });
}

/// 1 / the number of elements of a window that lie inside the image.
template <class T>
STRATA_INLINE inline T share_of(const window_pixels& w) {
  return T(1) / T(w.height * w.width);
}

template <class T>
[[gnu::noinline]] void pool_mean(const T* x, const pooled_pixels& p, T* y) {
  const std::ptrdiff_t C = p.channels, line = p.across.in * C;
  for (int i = 0; i < p.down.out; ++i)
    for (int j = 0; j < p.across.out; ++j, y += C) {
      const window_pixels w = under_window(p, i, j);
      const vec<T> share = broadcast(share_of<T>(w));
      with_window(w.height, w.width, [&](auto height, auto width) STRATA_INLINE {
        for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
          vec<T> sum = broadcast(T(0));
          for_taps(height, width, [&](auto a, auto b) STRATA_INLINE { sum += lane.load(x + w.corner + a * line + b * C + c); });
          lane.store(y + c, sum * share);
        });
      });
    }
}

template <class T>
[[gnu::noinline]] void mean_gradient(const T* dy, const pooled_pixels& p, T* dx, bool add) {
  const std::ptrdiff_t C = p.channels;
  if (p.disjoint())
    return for_disjoint_windows<T>(p, dx, add, [&](const window_pixels& w, std::ptrdiff_t at, auto lane) STRATA_INLINE {
      const vec<T> g = lane.load(dy + at) * share_of<T>(w);
      return [g](int, int) STRATA_INLINE { return g; };
    });
  for (int row = 0; row < p.down.in; ++row)
    for (int column = 0; column < p.across.in; ++column, dx += C)
      for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
        vec<T> sum = broadcast(T(0));
        for_covering(p, row, column, [&](std::ptrdiff_t window, int i, int j) STRATA_INLINE {
          sum = multiply_add(lane.load(dy + window * C + c), broadcast(share_of<T>(under_window(p, i, j))), sum);
        });
        put<T>(lane, dx + c, sum, add);
      });
}

/// The mean of each of C columns, in four interleaved sums.
template <class T>
[[gnu::noinline]] void column_means(const T* x, int rows, int C, T* y) {
  const std::ptrdiff_t line = C;
  for_vectors<T>(C, [&](std::ptrdiff_t c, auto lane) STRATA_INLINE {
    const vec<T> zero = broadcast(T(0));
    vec<T> sum[4] = {zero, zero, zero, zero};
    int r = 0;
    for (; r + 4 <= rows; r += 4) {
      STRATA_UNROLL
      for (int k = 0; k < 4; ++k) sum[k] += lane.load(x + (r + k) * line + c);
    }
    for (; r < rows; ++r) sum[0] += lane.load(x + r * line + c);
    lane.store(y + c, ((sum[0] + sum[1]) + (sum[2] + sum[3])) * (T(1) / T(rows)));
  });
}

/// With fewer channels, the plain loops of the reference kernels are faster.
inline constexpr int fewest_pooled_channels = 4;

/// The common part of max and average pooling. x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
struct pooling_kernel {
  using T = typename P::value_type;
  static constexpr int in_size = In.size(), taps = S.window_height * S.window_width;
  static constexpr int out_size = max_pooling<S>::output_shape(In).value.size();
  static constexpr pooled_pixels image{pooled_axis_tables<S.vertical(In)>::axis, pooled_axis_tables<S.horizontal(In)>::axis,
                                       In[2], S.window_width, S.window_height};
};

}  // namespace simd

namespace core {
/// x: (count, H, W, C); y: (count, OH, OW, C). saved: the winner of each window.
template <pool_settings S, class P, shape In>
  requires(In[2] >= simd::fewest_pooled_channels)
struct kernel<cpu, max_pooling<S>, P, In> : simd::pooling_kernel<S, P, In> {
  using base = simd::pooling_kernel<S, P, In>;
  using base::image, base::in_size, base::out_size;
  using typename base::T;
  static constexpr bool bytes = base::taps <= 128;
  static constexpr kernel_traits traits{.saved = bytes ? (out_size + int(sizeof(T)) - 1) / int(sizeof(T)) : out_size,
                                        .reads_input = false};

  static auto winners(const operands<T>& o, int n) {
    return reinterpret_cast<typename simd::winner_of<T, bytes>::element*>(o.saved + std::ptrdiff_t(n) * traits.saved);
  }
  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n)
      simd::pool_largest<T, bytes>(o.x[0] + std::ptrdiff_t(n) * in_size, image, o.y + std::ptrdiff_t(n) * out_size,
                                   winners(o, n));
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::largest_gradient<T, bytes>(o.dy + std::ptrdiff_t(n) * out_size, winners(o, n), image,
                                       o.dx[0] + std::ptrdiff_t(n) * in_size, o.adds_dx[0]);
  }
};

/// x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
  requires(In[2] >= simd::fewest_pooled_channels)
struct kernel<cpu, average_pooling<S>, P, In> : simd::pooling_kernel<S, P, In> {
  using base = simd::pooling_kernel<S, P, In>;
  using base::image, base::in_size, base::out_size;
  using typename base::T;
  static constexpr kernel_traits traits{.reads_input = false};

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n)
      simd::pool_mean(o.x[0] + std::ptrdiff_t(n) * in_size, image, o.y + std::ptrdiff_t(n) * out_size);
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::mean_gradient(o.dy + std::ptrdiff_t(n) * out_size, image, o.dx[0] + std::ptrdiff_t(n) * in_size, o.adds_dx[0]);
  }
};

/// x: (count, H, W, C); y: (count, C).
template <class P, shape In>
struct kernel<cpu, global_average_pool2d, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In[2], size = In.size(), pixels = size / C;
  static constexpr kernel_traits traits{.scratch = simd::aligned_size<T>(C), .reads_input = false};

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n)
      simd::column_means(o.x[0] + std::ptrdiff_t(n) * size, pixels, C, o.y + std::ptrdiff_t(n) * C);
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n) {
      for (int c = 0; c < C; ++c) o.scratch[c] = o.dy[std::ptrdiff_t(n) * C + c] * (T(1) / T(pixels));
      simd::copy_rows(o.scratch, 0, o.dx[0] + std::ptrdiff_t(n) * size, C, pixels, C, o.adds_dx[0]);
    }
  }
};

/// Max pooling whose window is the whole image. x: (count, H, W, C); y: (count, C).
template <class P, shape In>
  requires(In[2] >= simd::fewest_pooled_channels)
struct kernel<cpu, global_max_pool2d, P, In>
    : kernel<cpu, max_pooling<pool_settings{.window_height = In[0], .window_width = In[1]}>, P, In> {};
}  // namespace core

}  // namespace strata
