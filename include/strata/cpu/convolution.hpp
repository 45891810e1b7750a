// Convolutions, alone or with their activation: any stride, padding, dilation and groups.
#pragma once
#include <algorithm>
#include <cstring>
#include <strata/cpu/backends.hpp>
#include <strata/cpu/gemm.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/conv2d.hpp>

namespace strata {

namespace simd {

/// An image in the middle of zeros.
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

/// y[pixel][c] = f(bias[c] + sum over taps of x[pixel + tap][c] * w[tap][c]): every channel by itself. C and its rows as in
/// `product`; w_at: which row of w belongs to a tap. The channels are a whole vector (n = lanes) or the last few.
template <class T, class Activation, bool Whole>
[[gnu::noinline]] void channelwise(const product<T>& p, const int* w_at, int n) {
  constexpr int R = 6;
  const auto get = [&](const T* from) STRATA_INLINE { return Whole ? load(from) : load_first(from, n); };
  detail::row_walk a_walk{p.a_rows}, c_walk{p.c_rows};
  const T* const bias = p.bias ? p.bias : detail::zeros<T>;
  for (int left = p.rows; left > 0; left -= R) {
    const T* a[R];
    T* c[R];
    detail::next_rows(a, p.a, a_walk, left);
    detail::next_rows(c, p.c, c_walk, left);
    vec<T> sum[R];
    unroll<R>([&](auto r) STRATA_INLINE { sum[r] = get(p.add ? c[r] : bias); });
    for (int t = 0; t < p.runs; ++t) {
      const std::ptrdiff_t at = p.run_at[t];
      vec<T> w = get(p.b + w_at[t] * p.b_stride);
      keep(w);
      unroll<R>([&](auto r) STRATA_INLINE { sum[r] = get(a[r] + at) * w + sum[r]; });
    }
    unroll<R>([&](auto r) STRATA_INLINE {
      const vec<T> y = vector_activation<Activation>::template value<T>(sum[r]);
      if constexpr (Whole)
        store(c[r], y);
      else
        store_first(c[r], y, n);
    });
  }
}
template <class Activation, class T>
void all_channels(product<T> p, const int* w_at, int channels) {
  constexpr int L = lanes<T>;
  for (; channels > 0; channels -= L, p.a += L, p.b += L, p.c += L, p.bias += p.bias ? L : 0)
    if (channels >= L)
      channelwise<T, Activation, true>(p, w_at, L);
    else
      channelwise<T, Activation, false>(p, w_at, channels);
}

/// dw[tap][c] (+)= sum over pixels of x[pixel + tap][c] * dz[pixel][c]. Here the taps are the rows of `product`.
template <class T, bool Whole>
[[gnu::noinline]] void channelwise_weights(const product<T>& p, int n) {
  constexpr int R = 5;
  const auto get = [&](const T* from) STRATA_INLINE { return Whole ? load(from) : load_first(from, n); };
  detail::row_walk a_walk{p.a_rows}, c_walk{p.c_rows};
  for (int left = p.rows; left > 0; left -= R) {
    const T* a[R];
    T* c[R];
    detail::next_rows(a, p.a, a_walk, left);
    detail::next_rows(c, p.c, c_walk, left);
    vec<T> sum[R];
    unroll<R>([&](auto r) STRATA_INLINE { sum[r] = get(p.add ? c[r] : detail::zeros<T>); });
    const T* b = p.b;
    for (int run = 0; run < p.runs; ++run) {
      std::ptrdiff_t k = p.run_at[run];
      for (int i = 0; i < p.length; ++i, k += p.step, b += p.b_stride) {
        const vec<T> d = get(b);
        unroll<R>([&](auto r) STRATA_INLINE { sum[r] = get(a[r] + k) * d + sum[r]; });
      }
    }
    unroll<R>([&](auto r) STRATA_INLINE {
      if constexpr (Whole)
        store(c[r], sum[r]);
      else
        store_first(c[r], sum[r], n);
    });
  }
}
template <class T>
void all_channels_weights(product<T> p, int channels) {
  constexpr int L = lanes<T>;
  for (; channels > 0; channels -= L, p.a += L, p.b += L, p.c += L)
    if (channels >= L)
      channelwise_weights<T, true>(p, L);
    else
      channelwise_weights<T, false>(p, channels);
}

/// Where everything lies in a convolution of one sample: x and the gradient of the sums in frames of zeros, so that no tap
/// needs a check.
template <conv_settings S, shape In>
struct convolution_geometry {
  static constexpr window_axis vertical = convolution<S>::vertical(In), horizontal = convolution<S>::horizontal(In);
  static constexpr int H = In[0], W = In[1], C = In[2], F = S.filters, KH = S.kernel_height, KW = S.kernel_width, taps = KH * KW;
  static constexpr int groups = S.groups, Cg = C / groups, Fg = F / groups, OH = vertical.out(), OW = horizontal.out();
  static constexpr int SH = S.stride_height, SW = S.stride_width, DH = S.dilation_height, DW = S.dilation_width;
  static constexpr int in_size = H * W * C, pixels = OH * OW, out_size = pixels * F, weights = taps * Cg * F;
  static constexpr int top = vertical.padding(), left = horizontal.padding();
  /// Each channel by itself, one filter for each.
  static constexpr bool depthwise = groups == C && F == C && C > 1;
  /// The taps of a kernel row lie side by side.
  static constexpr bool joined = groups == 1 && DW == 1;

  static constexpr frame x = {H, W, top, left, std::max(top + H, (OH - 1) * SH + vertical.reach()),
                              std::max(left + W, (OW - 1) * SW + horizontal.reach())};
  static constexpr int x_row = x.outer_width * C;

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
  static constexpr auto every_tap = [] {
    offsets<taps> o{};
    for (int i = 0; i < taps; ++i) o.at[i] = i;
    return o;
  }();
  /// Runs of the weight gradient: the pixels of an output row.
  static constexpr auto line_at = [] {
    offsets<OH> o{};
    for (int i = 0; i < OH; ++i) o.at[i] = i * SH * x_row;
    return o;
  }();

  // The input gradient gathers. Inputs i = residue + stride * t see those taps for which i + padding - tap * dilation is a
  // multiple of the stride; each tap belongs to one residue ("phase") along each axis.
  static constexpr int floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
  static constexpr int residue(int tap, int dilation, int stride, int padding) {
    return ((tap * dilation - padding) % stride + stride) % stride;
  }
  /// Output row (or column) that input `residue` sees through a tap.
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

/// Convolution with an activation behind it; `linear` for none.
template <conv_settings S, class Activation, class P, shape In>
struct convolution_kernel : kernel_defaults {
  using T = typename P::value_type;
  using at = convolution_geometry<S, In>;
  static constexpr int C = at::C, F = at::F, Cg = at::Cg, Fg = at::Fg;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;
  static constexpr bool reads_output = activated;
  static constexpr int framed_x = at::x.needed() ? aligned_size<T>(at::x.pixels() * C) : 0;
  static constexpr int gradient = activated ? aligned_size<T>(at::out_size) : 0;
  static constexpr int framed_gradient = at::dz.needed() ? aligned_size<T>(at::dz.pixels() * F) : 0;
  static constexpr int scratch = framed_x + gradient + framed_gradient;
  /// The kernel with inputs and filters exchanged, tap after tap of each phase.
  static constexpr int derived = at::depthwise ? 0 : at::weights;

  static void derive(const T* const* w, T* derived) {
    if constexpr (!at::depthwise)
      for (int f = 0; f < at::phases; ++f)
        for (int g = 0; g < at::groups; ++g)
          for (int i = at::phase.first[f]; i < at::phase.first[f + 1]; ++i, derived += Fg * Cg)
            transpose(w[0] + at::phase.tap[i] * Cg * F + g * Fg, F, derived, Cg, Cg, Fg);
  }

  static const T* framed(const T* x, T* scratch) {
    if constexpr (!at::x.needed()) return x;
    put_into_frame(x, at::x, C, scratch);
    return scratch;
  }

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = framed(o.x[0] + std::ptrdiff_t(n) * at::in_size, o.scratch);
      for (int g = 0; g < (at::depthwise ? 1 : at::groups); ++g) {
        const product<T> p{at::pixels, x + g * Cg, {at::SW * C, at::OW, at::SH * at::x_row},
                           at::run_at.begin(), at::run_count, at::run_length, 1, o.w[0] + g * Fg, F,
                           o.y + std::ptrdiff_t(n) * at::out_size + g * Fg, {F}, S.bias ? o.w[1] + g * Fg : nullptr};
        if constexpr (at::depthwise)
          all_channels<Activation>(p, at::every_tap.begin(), C);
        else
          multiply<Fg, at::pixels, Activation>(p);
      }
    }
  }

  static void backward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* dz = o.dy + std::ptrdiff_t(n) * at::out_size;
      const bool add = o.adds_dw || n > 0;
      if constexpr (activated) {
        through_activation<Activation>(dz, o.y + std::ptrdiff_t(n) * at::out_size, o.scratch + framed_x, at::out_size);
        dz = o.scratch + framed_x;
      }
      if (S.bias && o.dw[1]) column_sums(dz, at::pixels, F, o.dw[1], add);
      if (o.dw[0]) weight_gradient(framed(o.x[0] + std::ptrdiff_t(n) * at::in_size, o.scratch), dz, o.dw[0], add);
      if (o.dx[0]) {
        if constexpr (at::dz.needed()) {
          put_into_frame(dz, at::dz, F, o.scratch + framed_x + gradient);
          dz = o.scratch + framed_x + gradient;
        }
        input_gradient(dz, at::depthwise ? o.w[0] : o.derived, o.dx[0] + std::ptrdiff_t(n) * at::in_size, o.adds_dx[0]);
      }
    }
  }

  static void weight_gradient(const T* x, const T* dz, T* dw, bool add) {
    const auto rows = [&](int count, const T* a, row_grid a_rows, const T* b, T* c) {
      return product<T>{count, a, a_rows, at::line_at.begin(), at::OH, at::OW, at::SW * C, b, F, c, {F}, nullptr, add};
    };
    if constexpr (at::depthwise)
      all_channels_weights(rows(at::taps, x, {at::DW * C, at::KW, at::DH * at::x_row}, dz, dw), C);
    else if constexpr (at::joined)
      multiply<F, at::taps * C>(rows(at::taps * C, x, {1, at::KW * C, at::DH * at::x_row}, dz, dw));
    else
      for (int g = 0; g < at::groups; ++g)
        for (int t = 0; t < at::taps; ++t)
          multiply<Fg, Cg>(rows(Cg, x + at::tap_at.at[t] + g * Cg, {1}, dz + g * Fg, dw + t * Cg * F + g * Fg));
  }

  static void input_gradient(const T* dz, const T* w, T* dx, bool add) {
    for (int f = 0; f < at::phases; ++f) {
      const int row = f / at::SW, column = f % at::SW, first = at::phase.first[f], taps = at::phase.first[f + 1] - first;
      const int height = at::lines(at::H, row, at::SH), width = at::lines(at::W, column, at::SW);
      if (height * width == 0) {
        w += at::depthwise ? 0 : taps * Cg * F;
        continue;
      }
      for (int g = 0; g < (at::depthwise ? 1 : at::groups); ++g, w += at::depthwise ? 0 : taps * Fg * Cg) {
        const product<T> p{height * width, dz + g * Fg, {F, width, at::dz.outer_width * F}, at::phase.at + first, taps, Fg, 1,
                           w, at::depthwise ? C : Cg, dx + (row * at::W + column) * C + g * Cg,
                           {at::SW * C, width, at::SH * at::W * C}, nullptr, add};
        if constexpr (at::depthwise)
          all_channels<linear>(p, at::phase.tap + first, C);
        else
          multiply<Cg, at::lines(at::H, 0, at::SH) * at::lines(at::W, 0, at::SW)>(p);
      }
    }
  }
};

}  // namespace simd

template <conv_settings S, class P, shape In>
struct kernel<cpu, convolution<S>, P, In> : simd::convolution_kernel<S, linear, P, In> {};

template <conv_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<convolution<S>, Activation>, P, In> : simd::convolution_kernel<S, Activation, P, In> {};

}  // namespace strata
