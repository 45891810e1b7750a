// Transposed convolutions, alone or with the activation that follows: the kernels of the convolution from the output to the
// input, with forward and input gradient exchanged.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/conv2d_transpose.hpp>

namespace strata {

namespace simd {

/// y = f(y + bias) for `size` elements in rows of `width`; bias may be null.
template <class Activation, class T>
[[gnu::noinline]] void add_bias_and_activate(T* y, std::ptrdiff_t size, int width, const T* bias) {
  for (std::ptrdiff_t at = 0; at < size; at += width)
    for_vectors<T>(std::min<std::ptrdiff_t>(width, size - at), [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      vec<T> sum = lane.load(y + at + i);
      if (bias) sum = sum + lane.load(bias + i);
      lane.store(y + at + i, vector_activation<Activation>::template value<T>(sum));
    });
}

/// x, dx: (count, H, W, C); kernel: (KH, KW, F, C); bias: (F); y, dy: (count, OH, OW, F).
template <transposed_conv_settings S, class Activation, class P, shape In>
struct transposed_convolution_kernel {
  using T = typename P::value_type;
  static constexpr shape Out = S.output(In);
  static constexpr conv_settings reversed =
      S.backwards(In);  // a name: g++ 12 cannot read a member of the call's value in defaults
  using backwards = convolution_kernel<reversed, linear, P, Out>;
  static constexpr int F = S.filters, images = backwards::images;
  static constexpr bool activated = !std::is_same_v<Activation, linear>;

  static constexpr int for_backwards = aligned_size<T>(backwards::traits.scratch),
                       for_gradient = activated ? aligned_size<T>(images * Out.size()) : 0,
                       for_sum = aligned_size<T>(images * In.size());
  static constexpr kernel_traits traits{
      .scratch = for_backwards + for_gradient + for_sum, .derived = backwards::traits.derived, .reads_output = activated};

  static void derive(const T* const* w, T* to) { backwards::derive(w, to); }

  /// Some samples of the convolution backwards: the gradient of its sums is x, that of its input is y.
  static operands<T> of_backwards(const operands<T>& o) {
    operands<T> b;
    b.w[0] = o.w[0], b.derived = o.derived, b.scratch = o.scratch;
    return b;
  }

  static void forward(const operands<T>& o) {
    operands<T> b = of_backwards(o);
    b.count = o.count, b.dy = o.x[0], b.dx[0] = o.y;
    backwards::backward(b);
    if constexpr (S.bias || activated) {
      constexpr int width = row_width(F);
      alignas(64) T bias[width];
      for (int i = 0; S.bias && i < width; ++i) bias[i] = o.w[1][i % F];
      add_bias_and_activate<Activation>(o.y, std::ptrdiff_t(o.count) * Out.size(), width, S.bias ? bias : nullptr);
    }
  }

  static void backward(const operands<T>& o) {
    for (int first = 0; first < o.count; first += images) {
      operands<T> b = of_backwards(o);
      b.count = std::min(images, o.count - first);
      const T* dz = o.dy + std::ptrdiff_t(first) * Out.size();
      if constexpr (activated) {
        T* const through = o.scratch + for_backwards;
        through_activation<Activation>(dz, o.y + std::ptrdiff_t(first) * Out.size(), through, b.count * Out.size());
        dz = through;
      }
      const bool add = o.adds_dw || first > 0;
      if (S.bias && o.dw[1]) pixel_sums(dz, b.count, Out.size() / F, F, o.dw[1], add);
      b.x[0] = dz;
      if (o.dw[0]) {
        b.dy = o.x[0] + std::ptrdiff_t(first) * In.size(), b.dw[0] = o.dw[0], b.adds_dw = add;
        backwards::backward(b);
      }
      if (!o.dx[0]) continue;
      T* const dx = o.dx[0] + std::ptrdiff_t(first) * In.size();
      b.y = o.adds_dx[0] ? o.scratch + for_backwards + for_gradient : dx;
      backwards::forward(b);
      if (o.adds_dx[0]) copy_rows(b.y, 0, dx, 0, 1, std::ptrdiff_t(b.count) * In.size(), true);
    }
  }
};

}  // namespace simd

namespace core {
template <transposed_conv_settings S, class P, shape In>
struct kernel<cpu, transposed_convolution<S>, P, In> : simd::transposed_convolution_kernel<S, linear, P, In> {};

template <transposed_conv_settings S, class Activation, class P, shape In>
  requires simd::follows_in_registers<Activation>
struct kernel<cpu, fused<transposed_convolution<S>, Activation>, P, In>
    : simd::transposed_convolution_kernel<S, Activation, P, In> {};
}  // namespace core

}  // namespace strata
