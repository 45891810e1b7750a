// average_pool2d<Window>: the mean of each window.
#pragma once
#include <strata/layers/pooling.hpp>

namespace strata {

namespace core {
/// The mean of the elements of each window. Elements in the padding do not count.
/// in: (H, W, C)  out: ((H - window) / stride + 1, (W - window) / stride + 1, C); with same: (ceil(H / stride), ceil(W / stride),
/// C)
template <pool_settings S>
struct average_pooling {
  static constexpr auto name = "average_pooling";
  static constexpr operation_traits traits{.makes = value_range::those_of_its_input};
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};
}  // namespace core

/// in: (H, W, C)  out: (H / Window, W / Window, C).  Options: stride, same_padding, pool_size.
/// https://keras.io/api/layers/pooling_layers/average_pooling2d
template <int Window = 2, class... Options>
struct average_pool2d : core::layer_options<core::pool_settings, Options...> {
  static constexpr auto name = "average_pooling2d", class_name = "AveragePooling2D";
  using operations = core::type_list<
      core::average_pooling<average_pool2d::configured(core::pool_settings{.window_height = Window, .window_width = Window})>>;
};

}  // namespace strata
