// Convolution + relu + max pooling of 2x2 windows in one kernel. Only outputs that a window reads are computed, and backward
// follows the winners that relu left alive.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/convolution/geometry.hpp>
#include <strata/cpu/convolution/one_channel_forward.hpp>
#include <strata/cpu/convolution/one_channel_weights.hpp>
#include <strata/cpu/convolution/planar_convolution.hpp>
#include <strata/cpu/convolution/pooled_image.hpp>
#include <strata/cpu/convolution/pooled_input.hpp>
#include <strata/cpu/convolution/pooled_masks.hpp>
#include <strata/cpu/convolution/pooled_product.hpp>
#include <strata/cpu/convolution/pooled_weights.hpp>
#include <strata/cpu/convolution/window_maximum.hpp>
#include <strata/cpu/convolution/winograd_convolution.hpp>
#include <strata/cpu/products/image_product.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <type_traits>

namespace strata {

namespace simd {

/// The fusion covers what nearly all such networks use: no strides, dilation or groups, and 2x2 windows in steps of 2.
template <conv_settings S, pool_settings Pool>
concept pools_in_registers =
    S.stride_height == 1 && S.stride_width == 1 && S.dilation_height == 1 && S.dilation_width == 1 && S.groups == 1 &&
    S.kernel_height <= 11 && S.kernel_width <= 11 && Pool.window_height == 2 && Pool.window_width == 2 &&
    (Pool.stride_height == 0 || Pool.stride_height == 2) && (Pool.stride_width == 0 || Pool.stride_width == 2) && !Pool.same;

}  // namespace simd

namespace core {
/// x, dx: (count, H, W, C); kernel: (KH, KW, C, F); bias: (F); y, dy: (count, OH / 2, OW / 2, F). saved: for each sample its
/// winners, (OH / 2, OW / 2, F) bytes.
template <conv_settings S, pool_settings Pool, class P, shape In>
  requires simd::pools_in_registers<S, Pool>
struct kernel<cpu, fused<convolution<S>, relu, max_pooling<Pool>>, P, In> {
  using T = typename P::value_type;
  using at = simd::convolution_geometry<S, In>;
  static constexpr int L = simd::lanes<T>, C = at::C, F = at::F, KH = at::KH, KW = at::KW, taps = at::taps;
  static constexpr int windows_down = at::OH / 2, windows_across = at::OW / 2, windows = windows_down * windows_across,
                       out_size = windows * F;
  static constexpr simd::pooled_image image{
      .windows = windows, .across = windows_across, .filters = F, .channels = C, .x_row = at::x_row};

  /// The number of elements of type T that hold so many bytes.
  static constexpr int numbers(int bytes) { return simd::aligned_size<T>((bytes + int(sizeof(T)) - 1) / int(sizeof(T))); }

  // The shape alone decides on the algorithm, so that every target computes the same bits.
  static constexpr bool one_channel = C == 1 && KH <= 5 && KW <= 5;
  static constexpr bool winograd = KH == 3 && KW == 3 && C >= 16 && F >= 16;

  /// With few filters, the lanes of a vector are windows. x is divided into planes of even and odd lines and columns: there the
  /// pixels that a tap reads for neighbouring windows are neighbours.
  static constexpr auto planes = simd::planar_layout::of<T>(at::x, C, 2, 2);
  /// The pieces of 16 pixels x 16 channels of x that are converted to planes.
  static constexpr int turned = C == 1 ? 0 : at::H * 2 * ((at::W / 2 + 15) / 16) * ((C + 15) / 16);
  static constexpr bool planar =
      !winograd &&
      simd::planes_pay<T>(4l * taps * C * windows, turned + 2 * windows_down * ((windows_across + 15) / 16) * ((F + 15) / 16), F,
                          windows_across, planes.width);
  static constexpr int plane_row = simd::planar_row(windows_down * planes.width),
                       plane_windows = (windows_down - 1) * planes.width + windows_across;
  /// With one channel, the lanes of the weight gradient are filters, and each one follows its own winners.
  static constexpr bool lanes_follow_winners = C == 1 && taps + 7 <= simd::registers;

  /// Winograd's algorithm stores one or two rows of tiles in a band of whole windows, which is pooled when it is complete.
  static constexpr int tile = simd::winograd_tile(C, F, 2 * windows_down, 2 * windows_across), band_rows = tile % 2 + 1;
  static constexpr bool whole = C % L == 0 && F % L == 0;
  static constexpr simd::winograd_convolution<T, tile, simd::winograd_panels::widths_of<T>(F), whole> by_tiles{
      .C = C,
      .F = F,
      .out_height = 2 * windows_down,
      .out_width = 2 * windows_across,
      .image = {at::H, at::W, at::top, at::left}};
  static constexpr int band_line = 2 * windows_across * F, band = simd::aligned_size<T>(band_rows * tile * band_line);
  // The sparse weight gradient has the shape (F, KH, row_size) until all samples are added.
  static constexpr int row = KW * C, row_size = simd::padded<T>(row), filter_size = KH * row_size;

  static constexpr int for_x = at::x.needed() ? simd::aligned_size<T>(at::x.pixels() * C) : 0;
  static constexpr int for_forward =
      winograd ? by_tiles.scratch() + band
      : planar ? simd::aligned_size<T>(planes.size()) + 4 * F * plane_row + simd::aligned_size<T>(windows_across * F)
               : 0;
  static constexpr int for_weights =
      lanes_follow_winners ? 0 : simd::aligned_size<T>(F * filter_size) + numbers(((windows + 31) / 32 + windows) * F * 4);
  static constexpr int for_input = at::x.pixels() * L;
  static constexpr int input_weights = simd::aligned_size<T>(simd::padded<T>(C) * F * taps);
  static constexpr kernel_traits traits{
      .saved = (out_size + int(sizeof(T)) - 1) / int(sizeof(T)),
      .scratch = for_x + std::max(for_forward, std::max(for_weights, simd::aligned_size<T>(for_input))),
      .scratch_per_sample = numbers(windows * 4 * simd::filter_words(F) * 8),
      .derived = input_weights + (winograd ? by_tiles.weights(C, F) : 0)};

  static void derive(const T* const* w, T* to) {
    simd::pooled_input_weights(w[0], taps, C, F, to);
    if constexpr (winograd) simd::winograd_panel_weights<tile>(w[0], C, F, to + input_weights);
  }

  /// The winners of sample n: (windows, F).
  static std::int8_t* winners(const operands<T>& o, int n) {
    return reinterpret_cast<std::int8_t*>(o.saved + std::ptrdiff_t(n) * traits.saved);
  }
  /// x of sample n, in a frame if one is needed.
  static const T* framed(const operands<T>& o, int n) {
    const T* x = o.x[0] + std::ptrdiff_t(n) * at::in_size;
    if constexpr (!at::x.needed()) return x;
    simd::put_into_frame(x, at::x, C, o.scratch);
    return o.scratch;
  }

  static void forward(const operands<T>& o) {
    const T* const bias = S.bias ? o.w[1] : nullptr;
    if constexpr (winograd)
      return by_tiles(o.x[0], o.count, o.derived + input_weights, o.scratch + band,
                      [&](const T* m, int element, int m_row, int n, simd::tile_walk& walk, int first, int filters) {
                        winograd_windows(o, m, element, m_row, n, walk, bias, first, filters);
                      });
    for (int n = 0; n < o.count; ++n) {
      const T* x = planar ? nullptr : framed(o, n);
      T* y = o.y + std::ptrdiff_t(n) * out_size;
      if constexpr (planar)
        forward_planar(o.x[0] + std::ptrdiff_t(n) * at::in_size, o.w[0], bias, y, winners(o, n), o.scratch + for_x);
      else if constexpr (one_channel)
        forward_one_channel(x, o.w[0], bias, y, winners(o, n));
      else
        simd::pooled_product<F>(simd::product<T>{.rows = windows,
                                                 .a = x,
                                                 .a_rows = image.window_grid(),
                                                 .run_at = at::run_at.begin(),
                                                 .runs = at::run_count,
                                                 .length = at::run_length,
                                                 .b = o.w[0],
                                                 .b_stride = F,
                                                 .c = y,
                                                 .c_rows = {F},
                                                 .bias = bias},
                                image, winners(o, n));
    }
  }

  /// The taps of the four pixels of a window: (4, taps).
  static constexpr auto plane_taps = [] {
    typename at::template offsets<4 * taps> o{};
    for (int i = 0; i < 4 * taps; ++i) o.at[i] = planes.tap(i / taps / 2 + i % taps / KW, i / taps % 2 + i % taps % KW);
    return o;
  }();

  static void forward_planar(const T* x, const T* w, const T* bias, T* y, std::int8_t* winner, T* buffer) {
    T *const out = buffer + simd::aligned_size<T>(planes.size()), *const line = out + 4 * F * plane_row;
    simd::to_planes(x, planes, buffer);
    for (int q = 0; q < 4; ++q)
      simd::planar_multiply<F, linear>(simd::planar_product<T>{.x = buffer,
                                                               .run_at = plane_taps.begin() + q * taps,
                                                               .runs = taps,
                                                               .planes = C,
                                                               .plane = planes.plane,
                                                               .w = w,
                                                               .rows = F,
                                                               .out = out + q * plane_row,
                                                               .out_row = 4 * plane_row,
                                                               .pixels = plane_windows,
                                                               .bias = bias});
    for (int f = 0; f < F; ++f) simd::pool_planes(out + f * 4 * plane_row, plane_row, plane_windows);
    for (int i = 0; i < windows_down; ++i, winner += windows_across * F, y += windows_across * F) {
      const T* const from = out + i * planes.width;
      simd::from_planes(from, 4 * plane_row, 0, F, 1, windows_across, y, F, 0, false, line);
      simd::from_planes(from + plane_row, 4 * plane_row, 0, F, 1, windows_across, line, F, 0, false, line);
      for (int k = 0; k < windows_across * F; ++k) winner[k] = std::int8_t(line[k]);
    }
  }

  static void forward_one_channel(const T* x, const T* w, const T* bias, T* y, std::int8_t* winner) {
    constexpr int V = simd::registers == 32 ? 2 : 1, last = (F - 1) % (V * L) + 1;
    const auto some = [&](auto vectors, auto lanes, int f) {
      const auto run = [&](auto may_be_nan) {
        return simd::one_channel_forward<T, KH, KW, vectors, lanes, may_be_nan>(x, w + f, bias ? bias + f : nullptr, y + f,
                                                                                winner + f, image);
      };
      if (!run(std::false_type{})) run(std::true_type{});
    };
    for (int f = 0; f + V * L < F; f += V * L) some(std::integral_constant<int, V>{}, std::integral_constant<int, L>{}, f);
    some(std::integral_constant<int, (last + L - 1) / L>{}, std::integral_constant<int, (last - 1) % L + 1>{}, F - last);
  }

  /// Stores n tiles of some filters, and pools each band that is complete.
  static void winograd_windows(const operands<T>& o, const T* m, int element, int m_row, int n, simd::tile_walk& walk,
                               const T* bias, int first, int filters) {
    T* const lines = o.scratch + first;
    for (int t = 0; t < n; ++t, m += m_row, walk.skip(1)) {
      const int row_of_band = walk.row % band_rows, rows = by_tiles.out_height - tile * walk.row,
                columns = by_tiles.out_width - tile * walk.column;
      simd::winograd_store_tile<tile, linear, whole>(m, element, filters, bias ? bias + first : nullptr,
                                                     lines + tile * (row_of_band * band_line + walk.column * F), F, band_line,
                                                     rows, columns, false);
      if (walk.column + 1 == walk.across && (row_of_band + 1 == band_rows || walk.row + 1 == walk.down)) {
        const int begin = (walk.row - row_of_band) * tile / 2, end = std::min(begin + band_rows * tile / 2, windows_down);
        const std::ptrdiff_t to = std::ptrdiff_t(begin) * windows_across * F + first;
        pool_band(lines, end - begin, filters, o.y + std::ptrdiff_t(walk.image) * out_size + to, winners(o, walk.image) + to);
      }
    }
  }

  /// Pools some rows of windows of a band for some filters.
  [[gnu::noinline]] static void pool_band(const T* lines, int rows, int filters, T* y, std::int8_t* winner) {
    for (int i = 0; i < rows; ++i, lines += band_line)
      for (int j = 0; j < windows_across; ++j, lines += 2 * F, y += F, winner += F) {
        const auto some = [&](int f, auto whole, int n) STRATA_INLINE {
          const auto get = [&](const T* p) STRATA_INLINE { return simd::detail::load_lanes<whole>(p + f, n); };
          const simd::vec<T> pixel[4] = {get(lines), get(lines + F), get(lines + band_line), get(lines + band_line + F)};
          simd::store_window<T, whole>(pixel, y + f, winner + f, n);
        };
        int f = 0;
        for (; f + L <= filters; f += L) some(f, std::true_type{}, L);
        if constexpr (F % L != 0)
          if (f < filters) some(f, std::false_type{}, filters - f);
      }
  }

  /// Calls f(the filters of a vector, its first filter).
  static void each_vector_of_filters(auto&& f) {
    for (int i = 0; i + L <= F; i += L) f(std::integral_constant<int, L>{}, i);
    if constexpr (F % L != 0) f(std::integral_constant<int, F % L>{}, F - F % L);
  }

  static void backward(const operands<T>& o) {
    const bool bias_apart = !lanes_follow_winners || !o.dw[0];
    if (S.bias && o.dw[1] && bias_apart)
      for (int n = 0; n < o.count; ++n)
        each_vector_of_filters([&](auto width, int f) {
          simd::pooled_bias<T, width>(o.dy + std::ptrdiff_t(n) * out_size + f, winners(o, n) + f, windows, F, o.dw[1] + f,
                                      o.adds_dw || n > 0);
        });
    if (o.dw[0]) {
      if constexpr (lanes_follow_winners)
        weight_gradient_one_channel(o);
      else
        weight_gradient(o);
    }
    if (o.dx[0]) input_gradient(o);
  }

  static void weight_gradient_one_channel(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T *x = framed(o, n), *dy = o.dy + std::ptrdiff_t(n) * out_size;
      const bool add = o.adds_dw || n > 0;
      each_vector_of_filters([&](auto width, int f) {
        T* const db = S.bias && o.dw[1] ? o.dw[1] + f : nullptr;
        simd::one_channel_weights<T, KH, KW, width>(x, dy + f, winners(o, n) + f, o.dw[0] + f, db, add, image);
      });
    }
  }

  // A register block of the sparse weight gradient has as many kernel rows as fit, or `part` vectors of one.
  static constexpr int row_vectors = row_size / L;
  static constexpr int block_rows() {
    for (int r = KH; r > 1; --r)
      if (KH % r == 0 && r * row_vectors + 2 <= simd::registers) return r;
    return 1;
  }
  static constexpr int row_parts = (row_vectors + simd::registers - 4) / (simd::registers - 3),
                       part = (row_vectors + row_parts - 1) / row_parts;
  /// The position of each window in x.
  static constexpr auto corners = [] {
    typename at::template offsets<windows> c{};
    for (int p = 0; p < windows; ++p) c.at[p] = (p / windows_across * at::x_row + p % windows_across * C) * 2;
    return c;
  }();

  static void weight_gradient(const operands<T>& o) {
    T* const transposed = o.scratch + for_x;
    auto* const alive = reinterpret_cast<std::uint32_t*>(transposed + simd::aligned_size<T>(F * filter_size));
    auto* const offsets = reinterpret_cast<std::int32_t*>(alive + (windows + 31) / 32 * F);
    if (o.adds_dw)
      for (int k = 0; k < KH; ++k) simd::transpose(o.dw[0] + k * row * F, F, transposed + k * row_size, filter_size, row, F);
    else
      std::fill_n(transposed, F * filter_size, T{});
    for (int n = 0; n < o.count; ++n) {
      const T *x = framed(o, n), *dy = o.dy + std::ptrdiff_t(n) * out_size;
      simd::alive_windows(winners(o, n), windows, F, alive);
      simd::winner_offsets(winners(o, n), corners.begin(), offsets, image);
      const auto block = [&](auto vectors, auto last, int k, int v) {
        simd::pooled_weights<T, block_rows(), vectors, last>(x + k * at::x_row + v * L, dy, offsets, alive,
                                                             transposed + k * row_size + v * L, row_size, filter_size, image);
      };
      for (int k = 0; k < KH; k += block_rows()) {
        int v = 0;
        for (; v + part < row_vectors; v += part)
          block(std::integral_constant<int, part>{}, std::integral_constant<int, L>{}, k, v);
        block(std::integral_constant<int, row_vectors - (row_parts - 1) * part>{},
              std::integral_constant<int, (row - 1) % L + 1>{}, k, v);
      }
    }
    for (int k = 0; k < KH; ++k) simd::transpose(transposed + k * row_size, filter_size, o.dw[0] + k * row * F, F, F, row);
  }

  /// Computes one vector of channels at a time, for all samples, so that its weights stay in the first-level cache. The sums
  /// are formed in dx itself if all taps lie within the image and the vectors of every target are whole. Otherwise they are
  /// formed in a frame of pixels x lanes and added to dx afterwards. The two orders differ, so the shape alone decides.
  static void input_gradient(const operands<T>& o) {
    constexpr bool in_place = !at::x.needed() && C == simd::aligned_size<T>(C);
    T* const frame = o.scratch + for_x;
    const auto alive = [&](int n) {
      return reinterpret_cast<std::uint64_t*>(o.scratch + traits.scratch + std::ptrdiff_t(n) * traits.scratch_per_sample);
    };
    for (int n = 0; n < o.count; ++n) simd::alive_filters(winners(o, n), windows, F, alive(n));
    for (int c = 0; c < C; c += L)
      for (int n = 0; n < o.count; ++n) {
        const T *const w = o.derived + std::ptrdiff_t(c) * F * taps, *const dy = o.dy + std::ptrdiff_t(n) * out_size;
        T* const dx = o.dx[0] + std::ptrdiff_t(n) * at::in_size + c;
        if constexpr (in_place) {
          if (!o.adds_dx[0])
            for (int i = 0; i < at::in_size; i += C) simd::store(dx + i, simd::vec<T>{});
          simd::pooled_input<T, KH, KW>(w, dy, alive(n), dx, C, at::x_row, image);
        } else {
          std::fill_n(frame, for_input, T{});
          simd::pooled_input<T, KH, KW>(w, dy, alive(n), frame, L, at::x.outer_width * L, image);
          simd::take_from_frame(frame, at::x, dx, C, std::min(L, C - c), o.adds_dx[0]);
        }
      }
  }
};
}  // namespace core

}  // namespace strata
