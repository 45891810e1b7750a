// Transposed convolutions on a GPU.
#pragma once
#include <strata/cuda/kernels/conv2d_passes.hpp>
#include <strata/layers/conv2d_transpose.hpp>

namespace strata {

namespace machine {

/// x: (count, H, W, C); kernel: (KH, KW, F, C); bias: (F); y: (count, OH, OW, F).
template <transposed_conv_settings S, class A, class P, shape In, class X = typename P::value_type, class Y = X>
struct transposed_convolution_kernel {
  using T = typename P::value_type;
  template <bool NarrowInput, bool NarrowOutput>
  using with_narrow =
      transposed_convolution_kernel<S, A, P, In, element_of_array<T, NarrowInput>, element_of_array<T, NarrowOutput>>;
  /// The gradient of the bias is no product: it does not round.
  using dz_type = gradient_before<A, T, Y>;
  static constexpr shape Out = S.output(In);
  using backwards = convolution<S.backwards(In)>;
  using at = sliding<backwards::vertical(Out), backwards::horizontal(Out), S.filters, In[2], 1>;
  using kernel_sums = kernel_gradient<at, P, dz_type, const X*, false>;
  static constexpr kernel_traits traits{.scratch = scratch_of_parts<kernel_sums>,
                                        .reads_output = follows_in_a_kernel<A>,
                                        .input_end = reads_operands<P>,
                                        .output_end = S.bias ? narrow_end{} : stores_activations<P, A>};

  static void forward(queue q, const operands<T>& o) {
    compute_large_images<at, P>(q, input_of<X>(o), o.w[0],
                                activated_with_bias<A, T, Y, S.filters>{output_of<Y>(o), S.bias ? o.w[1] : nullptr},
                                rows_of_leaves::of(o));
  }
  static void backward(queue q, const operands<T>& o) {
    using place = gradient_place<T>;
    using input_place = gradient_place<T, X>;
    const dz_type dz = dz_type::of(o);
    compute_gradients(q, kernel_sums{dz, input_of<X>(o), place::of_weight(o, 0), {}, rows_of_leaves::of(o)},
                      to_small_images<at, P, dz_type, input_place>{
                          {dz, o.w[0], input_place::of_input(o, 0), at::pixels(o.count, at::small_pixels)}},
                      o.scratch);
    if constexpr (S.bias)
      store_bias_gradient(q, rows_of_leaves::of(o), dz, place::of_weight(o, 1), S.filters, int(at::large_pixels));
  }
};

}  // namespace machine

namespace core {
template <transposed_conv_settings S, class P, shape In>
struct kernel<cuda, transposed_convolution<S>, P, In> : machine::transposed_convolution_kernel<S, linear, P, In> {};
template <transposed_conv_settings S, class A, class P, shape In>
  requires machine::follows_in_a_kernel<A>
struct kernel<cuda, fused<transposed_convolution<S>, A>, P, In> : machine::transposed_convolution_kernel<S, A, P, In> {};
}  // namespace core

}  // namespace strata
