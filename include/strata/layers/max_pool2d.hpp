// in: (H, W, C)  out: ((H - window) / stride + 1, ..., C), or (ceil(H / stride), ..., C) with same_padding
#pragma once
#include <strata/layers/pooling.hpp>

namespace strata {

/// The largest element of each window; the first one wins a tie, padding never wins.
template <pool_settings S>
struct max_pooling {
  static constexpr auto name = "max_pooling";
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};

/// Max pooling.  in: (H, W, C)  out: (H / Window, W / Window, C)   Options: stride, same_padding, pool_size.
/// https://keras.io/api/layers/pooling_layers/max_pooling2d
template <int Window = 2, class... Options>
struct max_pool2d : layer_options<pool_settings, Options...> {
  static constexpr auto name = "max_pooling2d", class_name = "MaxPooling2D";
  using operations = list<max_pooling<max_pool2d::configured(pool_settings{Window, Window})>>;
};

}  // namespace strata
