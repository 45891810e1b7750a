// Convolution + relu + max pooling in mixed precision: Winograd forward and both sparse gradients with bfloat16 products.
#pragma once
#include <strata/base/precision.hpp>
#include <strata/cpu/convolution/conv_pool.hpp>
#include <strata/cpu/convolution/pooled_weights.hpp>
#include <strata/cpu/convolution/window_maximum.hpp>
#include <strata/cpu/mixed/pooled_gradients.hpp>
#include <strata/cpu/mixed/winograd.hpp>

namespace strata {

namespace simd {

/// Uses bfloat16 products where they pay, and the kernels of f32 elsewhere. B: how pairs are multiplied.
template <class B, conv_settings S, pool_settings Pool, shape In>
struct mixed_conv_pool : kernel<cpu, fused<convolution<S>, relu, max_pooling<Pool>>, precision::f32, In> {
  using base = kernel<cpu, fused<convolution<S>, relu, max_pooling<Pool>>, precision::f32, In>;
  using at = convolution_geometry<S, In>;
  static constexpr int L = lanes<float>, C = at::C, F = at::F, KH = at::KH, KW = at::KW, taps = KH * KW;
  static constexpr int across = at::OW / 2, windows = at::OH / 2 * across, out_size = windows * F;
  static constexpr pooled_image image{.windows = windows, .across = across, .filters = F, .channels = C, .x_row = at::x_row};

  // The shape alone decides, so that every target computes the same bits. Gradients take 32 neighbours at a time.
  static constexpr bool fills(int n) { return (n + 31) / 32 * 32 * 4 <= n * 5; }
  static constexpr bool winograd = KH == 3 && KW == 3, for_weights = fills(KW * C), for_input = fills(C);

  // Winograd: tiles in register blocks, and as many blocks together as stay in the first-level cache.
  using cut = panels<float, padded<float>(F)>;
  static constexpr int pairs = (C + 1) / 2, v_row = padded<float>(C) / 2, m_row = padded<float>(F),
                       block = block_of(windows, cut::each, cut::each == 1 ? 12 : 8).rows,
                       blocks = std::clamp(6 * 1024 / (16 * block * (v_row + m_row)), 1, (windows + block - 1) / block),
                       tiles = block * blocks;

  // The transposed weight gradient: [filter][kernel row][row_size]. Takes two samples at a time if they fit into the first-level
  // cache.
  static constexpr int group = 2 * L, row = KW * C, row_groups = (row + group - 1) / group, row_size = row_groups * group,
                       filter_size = KH * row_size;
  static constexpr int most_groups = registers == 32 ? 12 : 4, parts = (row_groups + most_groups - 1) / most_groups,
                       part = (row_groups + parts - 1) / parts;
  static constexpr int block_rows() {
    for (int r = KH; r > 1; --r)
      if (KH % r == 0 && r * row_groups <= most_groups) return r;
    return 1;
  }
  static constexpr int x_size = at::x.pixels() * C,
                       together = 4 * x_size <= 24 * 1024 && out_size % 4 == 0 && x_size % 2 == 0 ? 2 : 1;
  static constexpr auto corners = [] {
    typename at::template offsets<together * windows> c{};
    for (int p = 0; p < together * windows; ++p)
      c.at[p] = p / windows * x_size + (p % windows / across * at::x_row + p % windows % across * C) * 2;
    return c;
  }();

  // The input gradient is summed in dx itself, or in a frame of pixels x group.
  static constexpr bool in_place = !at::x.needed() && C == group;
  static constexpr int frame_size = at::x.pixels() * group, input_weights = (C + group - 1) / group * F * taps * group;

  // Scratch and derived weights, in floats.
  static constexpr int halves(int n) { return aligned_size<float>((n + 1) / 2); }
  static constexpr int framed_x = at::x.needed() ? aligned_size<float>(x_size) : 0;
  static constexpr int rounded_x = halves(together * x_size + 2 * group);  // loads of whole groups pass the end of the last pixel
  static constexpr int rounded_dy = halves(together * out_size + L);
  static constexpr int alive_size = aligned_size<float>((together * windows + 31) / 32 * F),
                       offsets_size = aligned_size<float>(together * out_size);
  static constexpr int masks = 2 * windows * 4 * filter_words(F);
  static constexpr int base_derived = winograd && for_input ? 0 : aligned_size<float>(base::traits.derived);
  static constexpr int transformed = winograd ? 16 * pairs * m_row : 0;
  static constexpr kernel_traits traits = [] {
    kernel_traits ours = base::traits;
    ours.scratch =
        std::max({ours.scratch, framed_x + 16 * tiles * (v_row + m_row),
                  framed_x + rounded_x + rounded_dy + alive_size + offsets_size + F * filter_size, rounded_dy + frame_size});
    ours.scratch_per_sample = std::max(ours.scratch_per_sample, aligned_size<float>(masks));
    ours.derived = base_derived + transformed + (for_input ? halves(input_weights) + F * group : 0);
    return ours;
  }();

  static void derive(const float* const* w, float* to) {
    if constexpr (base_derived > 0) base::derive(w, to);
    to += base_derived;
    if constexpr (winograd) mixed_winograd_weights<B>(w[0], C, F, reinterpret_cast<bf16_pair*>(to));
    to += transformed;
    if constexpr (for_input)
      mixed_pooled_input_weights<B>(w[0], taps, C, F, reinterpret_cast<std::uint16_t*>(to), to + halves(input_weights));
  }

  static std::int8_t* winners(const operands<float>& o, int n) {
    return reinterpret_cast<std::int8_t*>(o.saved + std::ptrdiff_t(n) * traits.saved);
  }
  static const float* framed(const operands<float>& o, int n) {
    const float* x = o.x[0] + std::ptrdiff_t(n) * at::in_size;
    if constexpr (!at::x.needed()) return x;
    put_into_frame(x, at::x, C, o.scratch);
    return o.scratch;
  }

  static void forward(const operands<float>& o) {
    if constexpr (winograd)
      for (int n = 0; n < o.count; ++n)
        forward_winograd(framed(o, n), reinterpret_cast<const bf16_pair*>(o.derived + base_derived), S.bias ? o.w[1] : nullptr,
                         o.y + std::ptrdiff_t(n) * out_size, winners(o, n), o.scratch + framed_x);
    else
      base::forward(o);
  }

  static void forward_winograd(const float* x, const bf16_pair* u, const float* bias, float* y, std::int8_t* winner,
                               float* buffer) {
    auto* const v = reinterpret_cast<bf16_pair*>(buffer);
    float* const m = buffer + 16 * tiles * v_row;
    for (int first = 0; first < windows; first += tiles) {
      for (int t = 0; t < tiles; ++t)
        mixed_winograd_input<B>(x + corners.at[std::min(first + t, windows - 1)], at::x_row, C, v + t * v_row, tiles * v_row);
      constexpr int whole = cut::each == cut::rest ? m_row : (cut::count - 1) * cut::each * L;
      mixed_winograd_products<B, block, cut::each>(v, v_row, tiles * v_row, u, pairs, m, m_row, tiles * m_row, 0, whole, tiles);
      if constexpr (whole < m_row)
        mixed_winograd_products<B, block, cut::rest>(v, v_row, tiles * v_row, u, pairs, m, m_row, tiles * m_row, whole, m_row,
                                                     tiles);
      for (int t = 0; t < tiles && first + t < windows; ++t)
        pool_tile(m + t * m_row, bias, y + (first + t) * F, winner + (first + t) * F);
    }
  }
  [[gnu::noinline]] static void pool_tile(const float* m, const float* bias, float* y, std::int8_t* winner) {
    const auto some = [&](int f, auto whole, int n) STRATA_INLINE {
      vec<float> pixel[4];
      mixed_winograd_output(m + f, tiles * m_row, pixel);
      const vec<float> b = bias ? load_first(bias + f, n) : broadcast(0.0F);
      STRATA_UNROLL
      for (int q = 0; q < 4; ++q) pixel[q] = pixel[q] + b;
      store_window<float, whole>(pixel, y + f, winner + f, n);
    };
    for (int f = 0; f + L <= F; f += L) some(f, std::true_type{}, L);
    if constexpr (F % L != 0) some(F - F % L, std::false_type{}, F % L);
  }

  static void backward(const operands<float>& o) {
    operands<float> rest = o;
    if (for_weights) rest.dw[0] = nullptr;
    if (for_input) rest.dx[0] = nullptr;
    base::backward(rest);
    if constexpr (for_weights)
      if (o.dw[0]) weight_gradient(o);
    if constexpr (for_input)
      if (o.dx[0]) input_gradient(o);
  }

  static void weight_gradient(const operands<float>& o) {
    auto* const x = reinterpret_cast<bf16_pair*>(o.scratch + framed_x);
    auto* const dy = reinterpret_cast<bf16_pair*>(o.scratch + framed_x + rounded_x);
    auto* const alive = reinterpret_cast<std::uint32_t*>(o.scratch + framed_x + rounded_x + rounded_dy);
    auto* const offsets = reinterpret_cast<std::int32_t*>(o.scratch + framed_x + rounded_x + rounded_dy + alive_size);
    float* const transposed = o.scratch + framed_x + rounded_x + rounded_dy + alive_size + offsets_size;
    std::fill_n(transposed, F * filter_size, 0.f);
    if (o.adds_dw) {
      for (int k = 0; k < KH; ++k) transpose(o.dw[0] + k * row * F, F, transposed + k * row_size, filter_size, row, F);
      order_groups<B, true>(transposed, F * filter_size);
    }
    std::fill_n(x, rounded_x, 0u);
    for (int n = 0; n < o.count; n += together) {
      const int samples = std::min(together, o.count - n);
      pooled_image some = image;
      some.windows = samples * windows;
      for (int k = 0; k < samples; ++k) round_row<B>(framed(o, n + k), x_size, x + k * x_size / 2);
      round_row<B>(o.dy + std::ptrdiff_t(n) * out_size, samples * out_size, dy);
      alive_windows(winners(o, n), some.windows, F, alive);
      winner_offsets(winners(o, n), corners.begin(), offsets, some);
      const auto add = [&](auto groups, int k, int g) {
        mixed_pooled_weights<B, block_rows(), groups>(reinterpret_cast<const std::uint16_t*>(x) + k * at::x_row + g * group,
                                                      reinterpret_cast<const std::uint16_t*>(dy), offsets, alive,
                                                      transposed + k * row_size + g * group, row_size, filter_size, some);
      };
      for (int k = 0; k < KH; k += block_rows()) {
        int g = 0;
        for (; g + part < row_groups; g += part) add(std::integral_constant<int, part>{}, k, g);
        add(std::integral_constant<int, row_groups - (parts - 1) * part>{}, k, g);
      }
    }
    order_groups<B, false>(transposed, F * filter_size);
    for (int k = 0; k < KH; ++k) transpose(transposed + k * row_size, filter_size, o.dw[0] + k * row * F, F, F, row);
  }

  /// One group of channels at a time, for all samples: its weights stay in the first-level cache.
  static void input_gradient(const operands<float>& o) {
    auto* const dy = reinterpret_cast<bf16_pair*>(o.scratch);
    const auto* const w = reinterpret_cast<const std::uint16_t*>(o.derived + base_derived + transformed);
    const auto alive = [&](int n) {
      return reinterpret_cast<std::uint64_t*>(o.scratch + traits.scratch + std::ptrdiff_t(n) * traits.scratch_per_sample);
    };
    for (int n = 0; n < o.count; ++n) alive_filters(winners(o, n), windows, F, alive(n));
    for (int c = 0; c < C; c += group)
      for (int n = 0; n < o.count; ++n) {
        round_row<B>(o.dy + std::ptrdiff_t(n) * out_size, out_size, dy);
        float *const to = o.dx[0] + std::ptrdiff_t(n) * at::in_size + c, *const dx = in_place ? to : o.scratch + rounded_dy;
        if (!in_place || !o.adds_dx[0]) std::fill_n(dx, frame_size, 0.f);
        mixed_pooled_input<B, KH, KW>(w + std::ptrdiff_t(c) * F * taps, reinterpret_cast<const std::uint16_t*>(dy), alive(n), dx,
                                      at::x.outer_width, image);
        if constexpr (!in_place) take_groups_from_frame(dx, at::x, to, C, std::min(group, C - c), o.adds_dx[0]);
      }
  }
};

}  // namespace simd

namespace core {
template <conv_settings S, pool_settings Pool, shape In>
  requires simd::pools_in_registers<S, Pool> && (In[2] >= 16 && S.filters >= 16)
struct kernel<cpu, fused<convolution<S>, relu, max_pooling<Pool>>, precision::mixed_bf16, In>
    : simd::mixed_conv_pool<simd::bf16, S, Pool, In> {};
}  // namespace core

}  // namespace strata
