// in: (H, W, C)  out: ((H - window) / stride + 1, ..., C), or (ceil(H / stride), ..., C) with same_padding
#pragma once
#include <strata/layers/pooling.hpp>

namespace strata {

/// The mean of those elements of each window that lie inside the image: padding does not count.
template <pool_settings S>
struct average_pooling {
  static constexpr auto name = "average_pooling";
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};

/// Average pooling.  in: (H, W, C)  out: (H / Window, W / Window, C)   Options: stride, same_padding, pool_size.
/// https://keras.io/api/layers/pooling_layers/average_pooling2d
template <int Window = 2, class... Options>
struct average_pool2d : layer_options<pool_settings, Options...> {
  static constexpr auto name = "average_pooling2d", class_name = "AveragePooling2D";
  using operations = list<average_pooling<average_pool2d::configured(pool_settings{Window, Window})>>;
};

}  // namespace strata
