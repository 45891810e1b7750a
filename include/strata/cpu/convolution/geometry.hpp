// Sizes and offsets of a convolution, as constants of its settings and the shape of its input.
#pragma once
#include <algorithm>
#include <strata/cpu/convolution/frame.hpp>
#include <strata/layers/conv2d.hpp>

namespace strata::simd {

/// The sizes and offsets of a convolution. x and the gradient of the sums are in frames of zeros, so that no tap needs a bounds
/// check.
template <conv_settings S, shape In>
struct convolution_geometry {
  static constexpr window_axis vertical = convolution<S>::vertical(In), horizontal = convolution<S>::horizontal(In);
  static constexpr int H = In[0], W = In[1], C = In[2], F = S.filters, KH = S.kernel_height, KW = S.kernel_width, taps = KH * KW;
  static constexpr int groups = S.groups, Cg = C / groups, Fg = F / groups, OH = vertical.out(), OW = horizontal.out();
  static constexpr int SH = S.stride_height, SW = S.stride_width, DH = S.dilation_height, DW = S.dilation_width;
  static constexpr int in_size = H * W * C, pixels = OH * OW, out_size = pixels * F, weights = taps * Cg * F;
  static constexpr int top = vertical.padding(), left = horizontal.padding();
  /// The taps of a kernel row are neighbours in memory.
  static constexpr bool joined = groups == 1 && DW == 1;

  static constexpr frame x = {H,
                              W,
                              top,
                              left,
                              std::max(top + H, (OH - 1) * SH + vertical.reach()),
                              std::max(left + W, (OW - 1) * SW + horizontal.reach())};
  static constexpr int x_row = x.outer_width * C;

  /// Images that are computed together: small ones, so that no register block is half empty, and weights are not read for a few
  /// pixels only.
  static constexpr int images = std::clamp(512 / pixels, 1, 32);
  static constexpr int x_size = x.needed() ? x.pixels() * C : in_size;
  /// Each output pixel reads only the input pixel at its own place: the images are one long matrix.
  static constexpr bool pointwise = taps == 1 && SH == 1 && SW == 1 && !x.needed();

  template <int N>
  struct offsets {
    int at[N];
    constexpr const int* begin() const { return at; }
  };
  /// Runs of the forward product: kernel rows, or single taps.
  static constexpr int run_count = joined ? KH : taps, run_length = joined ? KW * C : Cg;
  static constexpr auto run_at = [] {
    offsets<run_count> o{};
    for (int i = 0; i < run_count; ++i) o.at[i] = joined ? i * DH * x_row : i / KW * DH * x_row + i % KW * DW * C;
    return o;
  }();
  static constexpr auto tap_at = [] {
    offsets<taps> o{};
    for (int i = 0; i < taps; ++i) o.at[i] = i / KW * DH * x_row + i % KW * DW * C;
    return o;
  }();
  /// Runs of the weight gradient: the pixels of an output row, in all images that are computed together.
  static constexpr auto line_at = [] {
    offsets<OH * images> o{};
    for (int i = 0; i < OH * images; ++i) o.at[i] = i / OH * x_size + i % OH * SH * x_row;
    return o;
  }();

  // The input gradient gathers. Input i = residue + stride * t is read through the taps for which i + padding - tap * dilation is
  // a multiple of the stride. Each tap belongs to one residue ("phase") along each axis.
  static constexpr int floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
  static constexpr int residue(int tap, int dilation, int stride, int padding) {
    return ((tap * dilation - padding) % stride + stride) % stride;
  }
  /// The output row (or column) that reads input `residue` through a tap.
  static constexpr int shift(int tap, int dilation, int stride, int padding) {
    return floor_div(residue(tap, dilation, stride, padding) + padding - tap * dilation, stride);
  }
  static constexpr int lines(int extent, int residue, int stride) {
    return residue < extent ? (extent - residue + stride - 1) / stride : 0;
  }
  static constexpr frame gradient_frame() {
    int before[2] = {0, 0}, after[2] = {0, 0};
    for (int t = 0; t < taps; ++t) {
      const int a = t / KW, b = t % KW, sh = shift(a, DH, SH, top), sw = shift(b, DW, SW, left);
      before[0] = std::max(before[0], -sh), before[1] = std::max(before[1], -sw);
      after[0] = std::max(after[0], sh + lines(H, residue(a, DH, SH, top), SH) - OH);
      after[1] = std::max(after[1], sw + lines(W, residue(b, DW, SW, left), SW) - OW);
    }
    return {OH, OW, before[0], before[1], before[0] + OH + after[0], before[1] + OW + after[1]};
  }
  static constexpr frame dz = gradient_frame();
  static constexpr int dz_size = dz.needed() ? dz.pixels() * F : out_size;

  static constexpr int phases = SH * SW;
  struct phase_table {
    int first[phases + 1], tap[taps], at[taps];
  };
  static constexpr phase_table phase = [] {
    phase_table p{};
    int n = 0;
    for (int f = 0; f < phases; ++f) {
      p.first[f] = n;
      for (int t = 0; t < taps; ++t) {
        const int a = t / KW, b = t % KW;
        if (residue(a, DH, SH, top) != f / SW || residue(b, DW, SW, left) != f % SW) continue;
        p.tap[n] = t;
        p.at[n++] = ((dz.top + shift(a, DH, SH, top)) * dz.outer_width + dz.left + shift(b, DW, SW, left)) * F;
      }
    }
    p.first[phases] = n;
    return p;
  }();
};

}  // namespace strata::simd
