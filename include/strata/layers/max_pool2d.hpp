// max_pool2d<Window>: the largest element of each window.
#pragma once
#include <strata/layers/pooling.hpp>

namespace strata {

namespace core {
/// The largest element of each window. The gradient of equal elements goes to the first; padding is never the largest.
/// in: (H, W, C)  out: ((H - window) / stride + 1, (W - window) / stride + 1, C); with same: (ceil(H / stride), ceil(W / stride),
/// C)
template <pool_settings S>
struct max_pooling {
  static constexpr auto name = "max_pooling";
  static constexpr operation_traits traits{.shares_kernel = true, .makes = value_range::those_of_its_input};
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};
}  // namespace core

/// in: (H, W, C)  out: (H / Window, W / Window, C).  Options: stride, same_padding, pool_size.
/// https://keras.io/api/layers/pooling_layers/max_pooling2d
template <int Window = 2, class... Options>
struct max_pool2d : core::layer_options<core::pool_settings, Options...> {
  static constexpr auto name = "max_pooling2d", class_name = "MaxPooling2D";
  using operations = core::type_list<
      core::max_pooling<max_pool2d::configured(core::pool_settings{.window_height = Window, .window_width = Window})>>;
};

}  // namespace strata
