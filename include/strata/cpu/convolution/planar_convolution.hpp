// Convolutions with few filters, and input gradients of few channels, image by image, with pixels as lanes.
#pragma once
#include <strata/cpu/convolution/geometry.hpp>
#include <strata/cpu/convolution/planar.hpp>

namespace strata::simd {

/// True if empty lanes cost more than converting images to planes and back. The unit is a vector of products; converting 16
/// pixels with 16 channels costs about 120. The sums have the same order both ways, so each target may decide for itself.
template <class T>
constexpr bool planes_pay(long terms, int pieces, int channels, int columns, int width) {
  return columns > 0 &&
         padded<T>(channels) * terms / lanes<T> > channels * terms / lanes<T> * 11 / 10 * width / columns + 120 * pieces;
}
/// The length of a row of planes: register blocks reach beyond the last pixel.
constexpr int planar_row(int pixels) { return (pixels + 128) / 16 * 16; }

template <conv_settings S, shape In, class T>
struct planar_convolution {
  using at = convolution_geometry<S, In>;
  static constexpr int C = at::C, F = at::F, KH = at::KH, KW = at::KW;

  static constexpr int pieces(int lines, int columns, int stride, int channels) {
    return channels == 1 ? 0 : lines * stride * ((columns / stride + 15) / 16) * ((channels + 15) / 16);
  }
  static constexpr int turned = pieces(at::H, at::W, at::SW, C) + pieces(at::OH, at::OW, 1, F);
  static constexpr planar_layout x = planar_layout::of<T>(at::x, C, at::SH, at::SW), dz = planar_layout::of<T>(at::dz, F, 1, 1);
  static constexpr bool forward_pays =
      at::groups == 1 && planes_pay<T>(long(at::taps) * C * at::pixels, turned, F, at::OW, x.width);
  static constexpr bool input_pays =
      at::groups == 1 && planes_pay<T>(long(at::taps) * F * at::pixels, turned, C, at::lines(at::W, 0, at::SW), dz.width);
  /// Here the order of sums differs, so only the shape decides.
  static constexpr int enough_filters = 12;  // to fill the lanes of products of matrices
  static constexpr bool weights_pay = at::groups == 1 && F < enough_filters && at::OW * 10 >= x.width * 6 && at::OW >= 4;

  static constexpr int pixels = (at::OH - 1) * x.width + at::OW;
  static constexpr int out_row = planar_row(at::OH * x.width), dx_row = planar_row(dz.height * dz.width);
  static constexpr int for_x = aligned_size<T>(x.size()), for_dz = aligned_size<T>(dz.size());
  static constexpr int scratch = std::max(forward_pays || weights_pay ? for_x + aligned_size<T>(F * out_row + 128) : 0,
                                          input_pays ? for_dz + C* dx_row + aligned_size<T>(at::W* C) : 0);

  static constexpr auto taps = [] {
    typename at::template offsets<at::taps> o{};
    for (int i = 0; i < at::taps; ++i) o.at[i] = x.tap(i / KW * at::DH, i % KW * at::DW);
    return o;
  }();
  static planar_product<T> geometry(const T* planes, const T* w, T* out) {
    return {.x = planes,
            .run_at = taps.begin(),
            .runs = at::taps,
            .planes = C,
            .plane = x.plane,
            .w = w,
            .rows = F,
            .out = out,
            .out_row = out_row,
            .pixels = pixels};
  }

  template <class Activation>
  static void forward(const T* image, const T* w, const T* bias, T* y, T* buffer) {
    T* const out = buffer + for_x;
    to_planes(image, x, buffer);
    planar_product<T> p = geometry(buffer, w, out);
    p.bias = bias;
    planar_multiply<F, Activation>(p);
    from_planes<T>(out, out_row, x.width, F, at::OH, at::OW, y, F, at::OW * F, false, nullptr);
  }

  static void weight_gradient(const T* image, const T* gradient, T* dw, bool add, T* buffer) {
    constexpr planar_layout like_x = {{at::OH, at::OW, 0, 0, at::OH, x.width}, F, 1, 1, at::OH, x.width, out_row};
    T* const planes = buffer + for_x;
    to_planes(image, x, buffer);
    to_planes(gradient, like_x, planes);
    planar_weight_gradient<F>(geometry(buffer, nullptr, planes), dw, add);
  }

  static constexpr auto phase_taps = [] {
    typename at::template offsets<at::taps> o{};
    for (int i = 0; i < at::taps; ++i) {
      const int pixel = at::phase.at[i] / F;
      o.at[i] = dz.tap(pixel / at::dz.outer_width, pixel % at::dz.outer_width);
    }
    return o;
  }();

  /// w: [tap of each phase][filter][channel]
  static void input_gradient(const T* gradient, const T* w, T* dx, bool add, T* buffer) {
    T *const out = buffer + for_dz, *const line = out + C * dx_row;
    to_planes(gradient, dz, buffer);
    for (int f = 0; f < at::phases; ++f) {
      const int row = f / at::SW, column = f % at::SW, first = at::phase.first[f], count = at::phase.first[f + 1] - first;
      const int lines = at::lines(at::H, row, at::SH), columns = at::lines(at::W, column, at::SW);
      if (lines * columns > 0 && (count > 0 || !add)) {
        const planar_product<T> p{.x = buffer,
                                  .run_at = phase_taps.begin() + first,
                                  .runs = count,
                                  .planes = F,
                                  .plane = dz.plane,
                                  .w = w,
                                  .rows = C,
                                  .out = out,
                                  .out_row = dx_row,
                                  .pixels = (lines - 1) * dz.width + columns};
        planar_multiply<C, linear>(p);
        from_planes<T>(out, dx_row, dz.width, C, lines, columns, dx + (row * at::W + column) * C, at::SW * C,
                       std::ptrdiff_t(at::SH) * at::W * C, add, line);
      }
      w += count * F * C;
    }
  }
};

}  // namespace strata::simd
