// Convolutions on a GPU.
#pragma once
#include <strata/cuda/kernels/conv2d_passes.hpp>
#include <strata/cuda/kernels/pooled_conv2d.hpp>
#include <strata/layers/conv2d.hpp>

namespace strata {

namespace machine {

/// x: (count, H, W, C); kernel: (KH, KW, C / groups, F); bias: (F); y: (count, OH, OW, F). A: an activation, or linear. X, Y: an
/// element of x, and of y.
template <conv_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct convolution_kernel {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow = convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  using at = sliding_of<S, In>;
  using dz_type = gradient_before<A, T, Y>;
  static constexpr kernel_traits traits{.scratch = scratch_of_convolution<S, at, P, X, dz_type>(),
                                        .reads_output = follows_in_a_kernel<A>,
                                        .input_end = S.groups == 1 ? reads_operands<P> : narrow_end{},
                                        .output_end = S.groups == 1 ? stores_activations<P, A> : narrow_end{}};

  static void forward(queue q, const operands<T>& o) {
    compute_small_images<at, P>(q, input_of<X>(o), o.w[0],
                                activated_with_bias<A, T, Y, S.filters>{output_of<Y>(o), S.bias ? o.w[1] : nullptr},
                                rows_of_leaves::of(o));
  }
  static void backward(queue q, const operands<T>& o) { convolution_backward<S, at, P, X>(q, o, dz_type::of(o)); }
};

}  // namespace machine

namespace core {
template <conv_settings S, class P, shape In>
struct kernel<cuda, convolution<S>, P, In> : machine::convolution_kernel<S, linear, P, In> {};
template <conv_settings S, class A, class P, shape In>
  requires(machine::follows_in_a_kernel<A> && !machine::goes_to_dnn<S, P, In>)
struct kernel<cuda, fused<convolution<S>, A>, P, In> : machine::convolution_kernel<S, A, P, In> {};

template <conv_settings S, class A, pool_settings Pool, class P, shape In>
  requires machine::follows_in_a_kernel<A> && (S.groups == 1) && (!machine::goes_to_dnn<S, P, In>) &&
           (machine::pools_two_by_two<Pool>(convolution<S>::output_shape(In).value))
struct kernel<cuda, fused<convolution<S>, A, max_pooling<Pool>>, P, In> : machine::pooled_convolution_kernel<S, A, P, In> {};
}  // namespace core

}  // namespace strata
