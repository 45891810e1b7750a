// Transposed convolution in plain loops.
#pragma once
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/product_kernel.hpp>
#include <strata/reference/window.hpp>

namespace strata {

namespace detail {

/// The products of one sample, see product_kernel.
template <transposed_conv_settings S, shape In>
struct transposed_convolution_products {
  static constexpr shape Out = S.output(In);
  static constexpr int in_size = In.size(), out_size = Out.size(), channels = In[2], filters = S.filters;
  static constexpr int kernel_elements = S.kernel_height * S.kernel_width * filters * channels;
  static constexpr bool has_bias = S.bias;

  static constexpr void for_each(auto&& f) {
    using backwards = convolution<S.backwards(In)>;
    for_each_tap(backwards::vertical(Out), backwards::horizontal(Out), [&](int from, int to, int tap) {
      for (int k = 0; k < filters; ++k)
        for (int c = 0; c < channels; ++c) f(to * filters + k, from * channels + c, (tap * filters + k) * channels + c);
    });
  }
};

}  // namespace detail

namespace core {
/// x: (count, H, W, C); kernel: (KH, KW, F, C); bias: (F); y: (count, OH, OW, F).
template <transposed_conv_settings S, class P, shape In>
struct kernel<reference, transposed_convolution<S>, P, In>
    : detail::product_kernel<detail::transposed_convolution_products<S, In>, P> {};
}  // namespace core

}  // namespace strata
