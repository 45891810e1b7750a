// Batch normalization at inference, folded into the layer before it. With s = gamma / sqrt(variance + epsilon), that layer
// computes with the weights W s and the bias (b - mean) s + beta, fused with whatever follows.
#pragma once
#include <cmath>
#include <strata/base/multiply_add.hpp>
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/cpu/kernels/dense.hpp>
#include <strata/layers/batch_norm.hpp>

namespace strata {

namespace simd {

constexpr auto biased(auto settings) {
  settings.bias = true;
  return settings;
}

/// The same operation with a bias.
template <class Operation>
struct with_bias;
template <conv_settings S>
struct with_bias<convolution<S>> {
  static constexpr bool had_bias = S.bias;
  using type = convolution<biased(S)>;
};
template <dense_settings S>
struct with_bias<affine<S>> {
  static constexpr bool had_bias = S.bias;
  using type = affine<biased(S)>;
};

template <class... Operations>
struct fused_or_alone {
  using type = fused<Operations...>;
};
template <class Operation>
struct fused_or_alone<Operation> {
  using type = Operation;
};

/// The kernel of the folded layer with the operations that follow; void if there is none.
template <class Operation, class P, shape In, class... Rest>
using folds_into =
    typename find_kernel<cpu, typename fused_or_alone<typename with_bias<Operation>::type, Rest...>::type, P, In>::type;

template <class Operation, batch_norm_settings N, class P, shape In, class... Rest>
struct folded_kernel {
  using T = typename P::value_type;
  using layer = folds_into<Operation, P, In, Rest...>;
  static constexpr int F = Operation::output_shape(In).value.last(), rows = Operation::parameters(In)[0].extents.size() / F;
  static constexpr int weights = aligned_size<T>(rows * F), folded = weights + aligned_size<T>(F);
  static constexpr kernel_traits traits{.saved = layer::traits.saved,
                                        .scratch = layer::traits.scratch,
                                        .scratch_per_sample = layer::traits.scratch_per_sample,
                                        .derived = folded + layer::traits.derived,
                                        .only_infers = true};

  // The indices of the parameters of both operations.
  static constexpr bool had_bias = with_bias<Operation>::had_bias;
  static constexpr int gamma = 1 + had_bias, beta = gamma + N.scale, mean = beta + N.center, variance = mean + 1;

  static void derive(const T* const* w, T* to) {
    T* const bias = to + weights;
    for (int f = 0; f < F; ++f) {
      const double scale = (N.scale ? double(w[gamma][f]) : 1) / std::sqrt(double(w[variance][f]) + N.epsilon.value());
      for (int k = 0; k < rows; ++k) to[k * F + f] = T(double(w[0][k * F + f]) * scale);
      const double before = (had_bias ? double(w[1][f]) : 0) - double(w[mean][f]);
      bias[f] = T(strata::detail::multiply_add(before, scale, N.center ? double(w[beta][f]) : 0));
    }
    const T* const both[] = {to, bias};
    if constexpr (requires { &layer::derive; }) layer::derive(both, to + folded);
  }

  static void infer(const operands<T>& o) {
    operands<T> of_layer = o;
    of_layer.w[0] = o.derived, of_layer.w[1] = o.derived + weights;
    of_layer.derived = o.derived + folded;
    code_of<layer, T, host_device::queue, false>.infer(of_layer);
  }
};

}  // namespace simd

namespace core {
template <conv_settings S, batch_norm_settings N, class... Rest, class P, shape In>
  requires(!std::is_void_v<simd::folds_into<convolution<S>, P, In, Rest...>>)
struct kernel<cpu, fused<convolution<S>, batch_normalization<N>, Rest...>, P, In>
    : simd::folded_kernel<convolution<S>, N, P, In, Rest...> {};

template <dense_settings S, batch_norm_settings N, class... Rest, class P, shape In>
  requires(!std::is_void_v<simd::folds_into<affine<S>, P, In, Rest...>>)
struct kernel<cpu, fused<affine<S>, batch_normalization<N>, Rest...>, P, In> : simd::folded_kernel<affine<S>, N, P, In, Rest...> {
};
}  // namespace core

}  // namespace strata
