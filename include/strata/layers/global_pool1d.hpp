// global_average_pool1d, global_max_pool1d: one number per channel of a sequence.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/global_pool2d.hpp>

namespace strata {

namespace reasons {
inline constexpr reason global_pooling_takes_steps_channels{
    "global pooling in one dimension takes (steps, channels): put it after embedding and before flatten"};
}  // namespace reasons

namespace detail {
/// in: (N, C)  out: (N, 1, C): a sequence as an image of one column.
struct one_column {
  static constexpr auto name = "one_column";
  static constexpr operation_traits traits{.is_view = true, .makes = value_range::those_of_its_input};
  static constexpr expected_shape output_shape(shape in) {
    if (in.rank() != 2) return reasons::global_pooling_takes_steps_channels;
    return shape{in[0], 1, in[1]};
  }
};
}  // namespace detail

/// The mean of each channel.  in: (N, C)  out: (C)   https://keras.io/api/layers/pooling_layers/global_average_pooling1d
struct global_average_pool1d {
  static constexpr auto name = "global_average_pooling1d", class_name = "GlobalAveragePooling1D";
  using operations = core::type_list<detail::one_column, global_average_pool2d>;
};

/// The largest element of each channel; the gradient of equal elements goes to the first.  in: (N, C)  out: (C)
/// https://keras.io/api/layers/pooling_layers/global_max_pooling1d
struct global_max_pool1d {
  static constexpr auto name = "global_max_pooling1d", class_name = "GlobalMaxPooling1D";
  using operations = core::type_list<detail::one_column, global_max_pool2d>;
};

}  // namespace strata
