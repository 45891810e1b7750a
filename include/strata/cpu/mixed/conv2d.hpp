// Convolutions in mixed precision, alone or with the activation that follows: 3x3 forward and input gradient by Winograd, 1x1 as
// dense layers over pixels.
#pragma once
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/cpu/mixed/dense.hpp>
#include <strata/cpu/mixed/winograd.hpp>

namespace strata {

namespace simd {

/// A 3x3 convolution of several images with C channels and F filters, by 4x4 tiles. Register blocks have up to 12 tiles; as many
/// blocks are computed together as leave their transforms in the second-level cache.
struct mixed_tiles {
  int C, F;
  frame x;  // the frame of each image; it covers whole tiles
  int out_height, out_width;

  static constexpr mixed_tiles of(int C, int F, int height, int width, int top, int left, int out_height, int out_width) {
    const int outer_height = std::max(top + height, (out_height + 1) / 2 * 2 + 2),
              outer_width = std::max(left + width, (out_width + 1) / 2 * 2 + 2);
    return {C, F, {height, width, top, left, outer_height, outer_width}, out_height, out_width};
  }
  static constexpr int weights(int C, int F) { return aligned_size<float>(16 * ((C + 1) / 2) * padded<float>(F)); }

  constexpr int down() const { return (out_height + 1) / 2; }
  constexpr int across() const { return (out_width + 1) / 2; }
  constexpr int v_row() const { return padded<float>(C) / 2; }
  constexpr int m_row() const { return padded<float>(F); }
  constexpr int tiles() const { return std::clamp(6 * 1024 / (v_row() + m_row()), 12, 72) / 12 * 12; }
  // Elements must not lie a power of two apart.
  constexpr int v_element() const { return tiles() * v_row() + 16; }
  constexpr int m_element() const { return tiles() * m_row() + 16; }
  constexpr int framed() const { return x.needed() ? aligned_size<float>(x.pixels() * C) : 0; }
  constexpr int scratch() const { return framed() + aligned_size<float>(16 * v_element()) + 16 * m_element(); }

  template <class B, class Activation>
  [[gnu::noinline]] void convolve(const float* images, int count, const bf16_pair* u, const float* bias, float* y, bool add,
                                  float* scratch) const {
    auto* const v = reinterpret_cast<bf16_pair*>(scratch + framed());
    float* const m = scratch + framed() + aligned_size<float>(16 * v_element());
    const std::ptrdiff_t x_row = std::ptrdiff_t(x.outer_width) * C, size = std::ptrdiff_t(x.height) * x.width * C;
    const int each = down() * across(), all = count * each, at_once = tiles();
    for (int first = 0; first < all; first += at_once) {
      const int n = std::min(at_once, all - first);
      for (int t = 0; t < n; ++t) {
        const int image = (first + t) / each, tile = (first + t) % each;
        const float* from = images + image * size;
        if (x.needed()) {
          if (tile == 0) put_into_frame(from, x, C, scratch);
          from = scratch;
        }
        mixed_winograd_input<B>(from + 2 * (tile / across() * x_row + tile % across() * C), x_row, C, v + t * v_row(),
                                v_element());
      }
      products<B>(v, u, m, (n + 11) / 12 * 12);
      outputs<Activation>(m, n, first, bias, y, add);
    }
  }

 private:
  template <class B>
  void products(const bf16_pair* v, const bf16_pair* u, float* m, int n) const {
    constexpr int L = lanes<float>, R4 = registers == 32 ? 6 : 3, R2 = registers == 32 ? 12 : 4, R1 = registers == 32 ? 12 : 6;
    const int K = (C + 1) / 2, width = m_row(), fours = registers == 32 ? width / (4 * L) * (4 * L) : 0,
              twos = width / (2 * L) * (2 * L);
    const auto columns = [&](auto block, auto vectors, int from, int to) {
      if (from < to)
        mixed_winograd_products<B, block, vectors>(v, v_row(), v_element(), u, K, m, width, m_element(), from, to, n);
    };
    if constexpr (registers == 32) columns(std::integral_constant<int, R4>{}, std::integral_constant<int, 4>{}, 0, fours);
    columns(std::integral_constant<int, R2>{}, std::integral_constant<int, 2>{}, fours, twos);
    columns(std::integral_constant<int, R1>{}, std::integral_constant<int, 1>{}, twos, width);
  }

  /// y (+)= activation(bias + A^T m A) for n tiles, from tile `first` on.
  template <class Activation>
  [[gnu::noinline]] void outputs(const float* m, int n, int first, const float* bias, float* y, bool add) const {
    constexpr int L = lanes<float>;
    const std::ptrdiff_t y_row = std::ptrdiff_t(F) * out_width, size = y_row * out_height;
    for (int t = 0; t < n; ++t, m += m_row()) {
      const int tile = (first + t) % (down() * across()), row = tile / across() * 2, column = tile % across() * 2;
      float* const corner = y + (first + t) / (down() * across()) * size + row * y_row + std::ptrdiff_t(column) * F;
      for (int f = 0; f < F; f += L) {
        const int filters = std::min(L, F - f);
        const vec<float> b = bias ? load_first(bias + f, filters) : vec<float>{};
        vec<float> out[4];
        mixed_winograd_output(m + f, m_element(), out);
        STRATA_UNROLL
        for (int q = 0; q < 4; ++q) {
          if (row + q / 2 < out_height && column + q % 2 < out_width) {
            float* const to = corner + q / 2 * y_row + q % 2 * std::ptrdiff_t(F) + f;
            const vec<float> sum = out[q] + (add ? load_first(to, filters) : b);
            store_first(to, vector_activation<Activation>::template value<float>(sum), filters);
          }
        }
      }
    }
  }
};

template <conv_settings S, class Activation>
using convolution_operation =
    std::conditional_t<std::is_same_v<Activation, linear>, convolution<S>, fused<convolution<S>, Activation>>;

/// 3x3 with stride 1: forward and input gradient with bfloat16 products, the weight gradient as in f32. x: (count, H, W, C); y:
/// (count, OH, OW, F).
template <class B, conv_settings S, class Activation, shape In>
struct mixed_winograd_convolution : kernel<cpu, convolution_operation<S, Activation>, precision::f32, In> {
  using base = kernel<cpu, convolution_operation<S, Activation>, precision::f32, In>;
  using at = convolution_geometry<S, In>;
  static constexpr int C = at::C, F = at::F;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;
  static constexpr mixed_tiles forward_tiles = mixed_tiles::of(C, F, at::H, at::W, at::top, at::left, at::OH, at::OW),
                               back_tiles = mixed_tiles::of(F, C, at::OH, at::OW, 2 - at::top, 2 - at::left, at::H, at::W);

  /// Forward, backward, and space to rotate the kernel.
  static constexpr int forth = mixed_tiles::weights(C, F), back = mixed_tiles::weights(F, C);
  static constexpr kernel_traits traits = [] {
    kernel_traits ours = base::traits;
    ours.scratch = std::max({ours.scratch, forward_tiles.scratch(), back_tiles.scratch()});
    ours.scratch_per_sample = std::max(ours.scratch_per_sample, activated ? aligned_size<float>(at::out_size) : 0);
    ours.derived = forth + back + at::weights;
    return ours;
  }();

  static void derive(const float* const* w, float* to) {
    mixed_winograd_weights<B>(w[0], C, F, reinterpret_cast<bf16_pair*>(to));
    float* const turned = to + forth + back;
    for (int t = 0; t < 9; ++t) transpose(w[0] + t * C * F, F, turned + (8 - t) * C * F, C, C, F);
    mixed_winograd_weights<B>(turned, F, C, reinterpret_cast<bf16_pair*>(to + forth));
  }

  static void forward(const operands<float>& o) {
    forward_tiles.template convolve<B, Activation>(o.x[0], o.count, reinterpret_cast<const bf16_pair*>(o.derived),
                                                   S.bias ? o.w[1] : nullptr, o.y, false, o.scratch);
  }

  static void backward(const operands<float>& o) {
    operands<float> rest = o;
    rest.dx[0] = nullptr;
    base::backward(rest);
    if (!o.dx[0]) return;
    const float* dz = o.dy;
    if constexpr (activated) {
      through_activation<Activation>(o.dy, o.y, o.scratch + traits.scratch, o.count * at::out_size);
      dz = o.scratch + traits.scratch;
    }
    back_tiles.template convolve<B, linear>(dz, o.count, reinterpret_cast<const bf16_pair*>(o.derived + forth), nullptr, o.dx[0],
                                            o.adds_dx[0], o.scratch);
  }
};

/// 1x1 with stride 1: a dense layer whose samples are pixels, one image at a time. x: (count, H, W, C); y: (count, H, W, F).
template <class B, conv_settings S, class Activation, shape In>
struct mixed_pointwise {
  static constexpr int C = In[2], F = S.filters, pixels = In[0] * In[1];
  using dense = mixed_dense<B, dense_settings{.units = F, .bias = S.bias}, Activation, shape{C}>;
  static constexpr kernel_traits traits{.scratch = dense::traits.scratch + pixels * dense::traits.scratch_per_sample,
                                        .derived = dense::traits.derived,
                                        .reads_output = dense::traits.reads_output};

  static void derive(const float* const* w, float* to) { dense::derive(w, to); }
  static void each_image(const operands<float>& o, void (*f)(const operands<float>&)) {
    operands<float> one = o;
    one.count = pixels;
    for (int n = 0; n < o.count; ++n) {
      const std::ptrdiff_t in = std::ptrdiff_t(n) * pixels * C, out = std::ptrdiff_t(n) * pixels * F;
      one.x[0] = o.x[0] + in, one.y = o.y + out, one.adds_dw = o.adds_dw || n > 0;
      one.dx[0] = o.dx[0] ? o.dx[0] + in : nullptr, one.dy = o.dy ? o.dy + out : nullptr;
      f(one);
    }
  }
  static void forward(const operands<float>& o) { each_image(o, dense::forward); }
  static void backward(const operands<float>& o) { each_image(o, dense::backward); }
};

constexpr bool without_gaps(conv_settings s, int size) {
  return s.kernel_height == size && s.kernel_width == size && s.stride_height == 1 && s.stride_width == 1 &&
         s.dilation_height == 1 && s.dilation_width == 1 && s.groups == 1;
}
template <conv_settings S, shape In>
concept pays_by_tiles = without_gaps(S, 3) && In[2] >= 32 && S.filters >= 32;
template <conv_settings S, shape In>
concept pays_by_pixels = without_gaps(S, 1) && In[2] >= 32 && S.filters >= 32;

}  // namespace simd

namespace core {
template <conv_settings S, shape In>
  requires simd::pays_by_tiles<S, In>
struct kernel<cpu, convolution<S>, precision::mixed_bf16, In> : simd::mixed_winograd_convolution<simd::bf16, S, linear, In> {};
template <conv_settings S, class Activation, shape In>
  requires(simd::pays_by_tiles<S, In> && simd::follows_in_registers<Activation>)
struct kernel<cpu, fused<convolution<S>, Activation>, precision::mixed_bf16, In>
    : simd::mixed_winograd_convolution<simd::bf16, S, Activation, In> {};

template <conv_settings S, shape In>
  requires simd::pays_by_pixels<S, In>
struct kernel<cpu, convolution<S>, precision::mixed_bf16, In> : simd::mixed_pointwise<simd::bf16, S, linear, In> {};
template <conv_settings S, class Activation, shape In>
  requires(simd::pays_by_pixels<S, In> && simd::follows_in_registers<Activation>)
struct kernel<cpu, fused<convolution<S>, Activation>, precision::mixed_bf16, In>
    : simd::mixed_pointwise<simd::bf16, S, Activation, In> {};
}  // namespace core

}  // namespace strata
