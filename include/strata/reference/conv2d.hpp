// Convolution in plain loops, for all strides, dilations, groups and paddings.
#pragma once
#include <strata/layers/conv2d.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/product_kernel.hpp>
#include <strata/reference/window.hpp>

namespace strata {

namespace detail {

/// The products of one sample, see product_kernel.
template <conv_settings S, shape In>
struct convolution_products {
  static constexpr int in_size = In.size(), out_size = convolution<S>::output_shape(In).value.size(), filters = S.filters;
  static constexpr int group_channels = In[2] / S.groups, group_filters = filters / S.groups;
  static constexpr int kernel_elements = S.kernel_height * S.kernel_width * group_channels * filters;
  static constexpr bool has_bias = S.bias;

  static constexpr void for_each(auto&& f) {
    for_each_tap(convolution<S>::vertical(In), convolution<S>::horizontal(In), [&](int to, int from, int tap) {
      for (int g = 0; g < S.groups; ++g)
        for (int c = 0; c < group_channels; ++c)
          for (int k = g * group_filters; k < (g + 1) * group_filters; ++k)
            f(to * filters + k, from * In[2] + g * group_channels + c, (tap * group_channels + c) * filters + k);
    });
  }
};

}  // namespace detail

namespace core {
/// x: (count, H, W, C); kernel: (KH, KW, C / groups, F); bias: (F); y: (count, OH, OW, F).
template <conv_settings S, class P, shape In>
struct kernel<reference, convolution<S>, P, In> : detail::product_kernel<detail::convolution_products<S, In>, P> {};
}  // namespace core

}  // namespace strata
