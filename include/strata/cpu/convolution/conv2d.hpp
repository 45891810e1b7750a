// Convolutions, alone or with the activation that follows, for any stride, padding, dilation and groups.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/convolution/geometry.hpp>
#include <strata/cpu/convolution/lanewise_convolution.hpp>
#include <strata/cpu/convolution/planar_convolution.hpp>
#include <strata/cpu/convolution/winograd_gradient.hpp>
#include <strata/cpu/products/image_product.hpp>
#include <strata/kernel/kernel.hpp>

namespace strata {

namespace simd {

/// A convolution, then an activation; `linear` for none. x, dx: (count, H, W, C); kernel: (KH, KW, C / groups, F); bias: (F); y,
/// dy: (count, OH, OW, F). Channels, Filters: those of the whole convolution, if this is a part of one. A part uses the algorithm
/// of the whole, so that it adds in the same order.
template <conv_settings S, class Activation, class P, shape In, int Channels = In.last(), int Filters = S.filters>
struct convolution_kernel {
  using T = typename P::value_type;
  using at = convolution_geometry<S, In>;
  static constexpr int C = at::C, F = at::F, Cg = at::Cg, Fg = at::Fg;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;

  // The shape alone decides on the algorithm, so that every target computes the same bits.
  static constexpr bool winograd = at::KH == 3 && at::KW == 3 && at::SH == 1 && at::SW == 1 && at::DH == 1 && at::DW == 1 &&
                                   at::groups == 1 && Channels >= 16 && Filters >= 16;
  static constexpr int tile = winograd_tile(Channels, Filters, at::OH, at::OW),
                       back_tile = winograd_tile(Filters, Channels, at::H, at::W),
                       gradient_tile = winograd_gradient_tile(at::OH, at::OW);
  static constexpr bool whole = C % lanes<T> == 0 && F % lanes<T> == 0;
  static constexpr winograd_convolution<T, tile, winograd_panels::widths_of<T>(F), whole> by_tiles{
      .C = C, .F = F, .out_height = at::OH, .out_width = at::OW, .image = {at::H, at::W, at::top, at::left}};
  static constexpr winograd_convolution<T, back_tile, winograd_panels::widths_of<T>(C), whole> back_by_tiles{
      .C = F, .F = C, .out_height = at::H, .out_width = at::W, .image = {at::OH, at::OW, 2 - at::top, 2 - at::left}};
  static constexpr winograd_weight_gradient<T, gradient_tile, whole> weights_by_tiles{
      {.C = C, .F = F, .out_height = at::OH, .out_width = at::OW, .image = {at::H, at::W, at::top, at::left}},
      Channels + Filters};
  /// With fewer outputs than 16 windows of 2x2, transforming the sums costs more than the products.
  static constexpr bool winograd_weights = winograd && (at::OH + 1) / 2 * ((at::OW + 1) / 2) >= 16;

  using by_lanes = lanewise_convolution<S, In, T>;
  using by_planes = planar_convolution<S, In, T>;
  static constexpr bool planar_weights = by_planes::weights_pay && Filters < by_planes::enough_filters;

  static constexpr bool direct_weights = !winograd_weights && !by_lanes::forward_pays && !planar_weights;
  /// Lines that the direct weight gradient takes at a time: enough pixels to pay for loading and storing the sums.
  static constexpr int strip = std::max(1, 512 / at::OW);

  static constexpr int images = at::images;
  static constexpr int framed_x = at::x.needed() ? aligned_size<T>(images * at::x_size) : 0;
  static constexpr int framed_gradient = at::dz.needed() ? aligned_size<T>(images * at::dz_size) : 0;
  static constexpr int gradient = activated ? aligned_size<T>(images * at::out_size) : 0;
  static constexpr int for_forward = winograd                  ? by_tiles.scratch()
                                     : by_lanes::forward_pays  ? by_lanes::scratch
                                     : by_planes::forward_pays ? by_planes::scratch
                                                               : framed_x,
                       for_weights = winograd_weights         ? weights_by_tiles.scratch()
                                     : by_lanes::forward_pays ? by_lanes::scratch
                                     : planar_weights         ? by_planes::scratch
                                                              : framed_x,
                       for_input = winograd                ? back_by_tiles.scratch()
                                   : by_lanes::input_pays  ? by_lanes::scratch
                                   : by_planes::input_pays ? by_planes::scratch
                                                           : framed_gradient;

  /// The weights of Winograd's forward and of its input gradient; or the kernel with inputs and filters exchanged, tap after tap
  /// of each phase.
  static constexpr int for_tiles = winograd ? by_tiles.weights(C, F) : 0;
  static constexpr kernel_traits traits{.scratch = gradient + std::max({for_forward, for_weights, for_input}),
                                        .derived = winograd ? for_tiles + back_by_tiles.weights(F, C) : at::weights,
                                        .reads_output = activated};

  static void derive(const T* const* w, T* to) {
    if constexpr (winograd) {
      winograd_panel_weights<tile>(w[0], C, F, to);
      winograd_turned_weights<back_tile>(w[0], C, F, to + for_tiles);
    } else if constexpr (by_lanes::input_pays) {
      by_lanes::derive(w[0], to);
    } else {
      for (int f = 0; f < at::phases; ++f)
        for (int g = 0; g < at::groups; ++g)
          for (int i = at::phase.first[f]; i < at::phase.first[f + 1]; ++i, to += Fg * Cg)
            transpose(w[0] + at::phase.tap[i] * Cg * F + g * Fg, F, to, Cg, Cg, Fg);
    }
  }

  /// Puts images into their frames, one after the other; returns x if they need none.
  static const T* framed(const T* x, int count, T* buffer) {
    if constexpr (!at::x.needed()) return x;
    for (int n = 0; n < count; ++n) put_into_frame(x + n * at::in_size, at::x, C, buffer + n * at::x_size);
    return buffer;
  }

  static void forward(const operands<T>& o) {
    const T* const bias = S.bias ? o.w[1] : nullptr;
    if constexpr (winograd)
      return by_tiles(o.x[0], o.count, o.derived, o.scratch,
                      [&](const T* m, int element, int row, int n, tile_walk& walk, int f, int filters) {
                        winograd_store<Activation>(by_tiles, m, element, row, n, walk, f, filters, bias, o.y, false);
                      });
    if constexpr (by_lanes::forward_pays) {
      for (int n = 0; n < o.count; ++n)
        by_lanes::template forward<Activation>(o.x[0] + std::ptrdiff_t(n) * at::in_size, o.w[0], bias,
                                               o.y + std::ptrdiff_t(n) * at::out_size, o.scratch);
      return;
    }
    if constexpr (by_planes::forward_pays) {
      for (int n = 0; n < o.count; ++n)
        by_planes::template forward<Activation>(o.x[0] + std::ptrdiff_t(n) * at::in_size, o.w[0], bias,
                                                o.y + std::ptrdiff_t(n) * at::out_size, o.scratch);
      return;
    }
    for (int first = 0; first < o.count; first += images) {
      const int n = std::min(images, o.count - first);
      direct(framed(o.x[0] + std::ptrdiff_t(first) * at::in_size, n, o.scratch), n, o.w[0], bias,
             o.y + std::ptrdiff_t(first) * at::out_size);
    }
  }

  static void direct(const T* x, int count, const T* w, const T* bias, T* y) {
    for (int g = 0; g < at::groups; ++g)
      multiply_images<Fg, Activation>(image_product<T>{.rows = count * at::pixels,
                                                       .a = x + g * Cg,
                                                       .a_rows = {at::SW * C, at::OW, at::SH * at::x_row, at::OH, at::x_size},
                                                       .run_at = at::run_at.begin(),
                                                       .runs = at::run_count,
                                                       .length = at::run_length,
                                                       .b = w + g * Fg,
                                                       .b_stride = F,
                                                       .c = y + g * Fg,
                                                       .c_rows = {F},
                                                       .bias = bias ? bias + g * Fg : nullptr});
  }

  static void backward(const operands<T>& o) {
    T* const work = o.scratch + gradient;
    for (int first = 0; first < o.count; first += images) {
      const int n = std::min(images, o.count - first);
      const T *x = o.x[0] + std::ptrdiff_t(first) * at::in_size, *dz = o.dy + std::ptrdiff_t(first) * at::out_size;
      const bool add = o.adds_dw || first > 0;
      const T* const y = o.y + std::ptrdiff_t(first) * at::out_size;
      if (const bool strips = direct_weights && o.dw[0]; !strips) dz = through(dz, y, o.scratch, n * at::out_size);
      if (T* const dw = o.dw[0]) {
        if constexpr (winograd_weights) {
          weights_by_tiles(x, dz, n, dw, add, work);
        } else if constexpr (by_lanes::forward_pays) {
          for (int i = 0; i < n; ++i)
            by_lanes::weight_gradient(x + i * at::in_size, dz + i * at::out_size, dw, add || i > 0, work);
        } else if constexpr (planar_weights) {
          for (int i = 0; i < n; ++i)
            by_planes::weight_gradient(x + i * at::in_size, dz + i * at::out_size, dw, add || i > 0, work);
        } else {
          // In strips that stay in the cache from the activation to the last register block.
          const T* const all = framed(x, n, work);
          for (int line = 0; line < n * at::OH; line += strip) {
            const int lines = std::min(strip, n * at::OH - line), from = line * at::OW * F;
            weight_gradient(all, line, lines, through(dz + from, y + from, o.scratch + from, lines * at::OW * F), dw,
                            add || line > 0);
          }
          if (activated) dz = o.scratch;
        }
      }
      if (S.bias && o.dw[1]) pixel_sums(dz, n, at::pixels, F, o.dw[1], add);
      if (T* dx = o.dx[0] ? o.dx[0] + std::ptrdiff_t(first) * at::in_size : nullptr) {
        if constexpr (winograd)
          back_by_tiles(dz, n, o.derived + for_tiles, work,
                        [&](const T* m, int element, int row, int tiles, tile_walk& walk, int c, int channels) {
                          winograd_store<linear>(back_by_tiles, m, element, row, tiles, walk, c, channels, nullptr, dx,
                                                 o.adds_dx[0]);
                        });
        else if constexpr (by_lanes::input_pays)
          for (int i = 0; i < n; ++i)
            by_lanes::input_gradient(dz + i * at::out_size, o.derived, dx + i * at::in_size, o.adds_dx[0], work);
        else if constexpr (by_planes::input_pays)
          for (int i = 0; i < n; ++i)
            by_planes::input_gradient(dz + i * at::out_size, o.derived, dx + i * at::in_size, o.adds_dx[0], work);
        else
          input_gradient(framed_dz(dz, n, work), n, o.derived, dx, o.adds_dx[0]);
      }
    }
  }

  static const T* framed_dz(const T* dz, int count, T* buffer) {
    if constexpr (!at::dz.needed()) return dz;
    for (int n = 0; n < count; ++n) put_into_frame(dz + n * at::out_size, at::dz, F, buffer + n * at::dz_size);
    return buffer;
  }

  /// The gradient of the sums before the activation.
  static const T* through(const T* dy, [[maybe_unused]] const T* y, [[maybe_unused]] T* dz, [[maybe_unused]] int n) {
    if constexpr (!activated) return dy;
    through_activation<Activation>(dy, y, dz, n);
    return dz;
  }

  /// The weight gradient of `lines` lines of outputs.
  static void weight_gradient(const T* x, int line, int lines, const T* dz, T* dw, bool add) {
    const auto product = [&](int rows, const T* a, image_grid a_rows, const T* b, T* c) {
      return image_product<T>{.rows = rows,
                              .a = a,
                              .a_rows = a_rows,
                              .run_at = at::line_at.begin() + line,
                              .runs = at::pointwise ? 1 : lines,
                              .length = at::pointwise ? lines * at::OW : at::OW,
                              .step = at::SW * C,
                              .b = b,
                              .b_stride = F,
                              .c = c,
                              .c_rows = {F},
                              .add = add};
    };
    if constexpr (at::joined)
      multiply_images<F>(product(at::taps * C, x, {1, at::KW * C, at::DH * at::x_row}, dz, dw));
    else
      for (int g = 0; g < at::groups; ++g)
        for (int t = 0; t < at::taps; ++t)
          multiply_images<Fg>(product(Cg, x + at::tap_at.at[t] + g * Cg, {1}, dz + g * Fg, dw + t * Cg * F + g * Fg));
  }

  static void input_gradient(const T* dz, int count, const T* w, T* dx, bool add) {
    constexpr bool gaps = at::SH > at::KH || at::SW > at::KW || at::DH > 1 || at::DW > 1;  // no tap may reach some inputs
    if (gaps && !add) std::fill_n(dx, count * at::in_size, T{});
    for (int f = 0; f < at::phases; ++f) {
      const int row = f / at::SW, column = f % at::SW, first = at::phase.first[f], taps = at::phase.first[f + 1] - first;
      const int height = at::lines(at::H, row, at::SH), width = at::lines(at::W, column, at::SW);
      if (height * width == 0 || (taps == 0 && (gaps || add))) {
        w += taps * Cg * F;
        continue;
      }
      for (int g = 0; g < at::groups; ++g, w += taps * Fg * Cg)
        multiply_images<Cg>(image_product<T>{.rows = count * height * width,
                                             .a = dz + g * Fg,
                                             .a_rows = {F, width, at::dz.outer_width * F, height, at::dz_size},
                                             .run_at = at::phase.at + first,
                                             .runs = taps,
                                             .length = Fg,
                                             .b = w,
                                             .b_stride = Cg,
                                             .c = dx + (row * at::W + column) * C + g * Cg,
                                             .c_rows = {at::SW * C, width, at::SH * at::W * C, height, at::in_size},
                                             .add = add});
    }
  }
};

}  // namespace simd

namespace core {
template <conv_settings S, class P, shape In>
struct kernel<cpu, convolution<S>, P, In> : simd::convolution_kernel<S, linear, P, In> {};

template <conv_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<convolution<S>, Activation>, P, In> : simd::convolution_kernel<S, Activation, P, In> {};
}  // namespace core

}  // namespace strata
