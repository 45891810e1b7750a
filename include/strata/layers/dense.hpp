// dense<Units>: a fully connected layer.
#pragma once
#include <array>
#include <strata/initializers/constant.hpp>
#include <strata/initializers/glorot.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/options.hpp>

namespace strata {

namespace reasons {
inline constexpr reason dense_takes_a_rank_1_shape_put_flatten_in_front{
    "dense takes a rank-1 shape: put flatten or a global pooling in front of it"};
inline constexpr reason dense_takes_a_rank_1_shape_put_global_average_pool1d_or_flatten_in_front{
    "dense takes a rank-1 shape: put global_average_pool1d or flatten in front of it"};
inline constexpr reason dense_needs_at_least_one_unit{"dense needs at least one unit"};
}  // namespace reasons

namespace core {
struct dense_settings {
  using owns_kernel = void;
  using takes_activation = void;
  int units;
  bool bias = true;

  constexpr shape kernel(shape in) const { return {in[0], units}; }
  constexpr expected_shape output_shape(shape in) const {
    if (units < 1) return reasons::dense_needs_at_least_one_unit;
    if (in.rank() == 2) return reasons::dense_takes_a_rank_1_shape_put_global_average_pool1d_or_flatten_in_front;
    if (in.rank() != 1) return reasons::dense_takes_a_rank_1_shape_put_flatten_in_front;
    return shape{units};
  }
};

/// y = x W + b.  in: (N)  out: (units)  W: (N, units)  b: (units)
template <dense_settings S>
struct affine {
  static constexpr auto name = "affine";
  static constexpr operation_traits traits{.makes = value_range::real};

  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr long multiply_adds(shape in) { return long(in[0]) * S.units; }
  static constexpr auto parameters(shape in) {
    const parameter kernel{"kernel", S.kernel(in), &info_of_initializer<glorot_uniform>};
    if constexpr (S.bias)
      return std::array{kernel, parameter{"bias", {S.units}, &info_of_initializer<zeros>}};
    else
      return std::array{kernel};
  }
};
}  // namespace core

/// in: (N)  out: (Units)
/// Options: an activation, no_bias, kernel_/bias_initializer, kernel_/bias_regularizer.
/// https://keras.io/api/layers/core_layers/dense
template <int Units, class... Options>
struct dense : core::layer_options<core::dense_settings, Options...> {
  static constexpr auto name = "dense", class_name = "Dense";
  using operations = detail::join_t<core::type_list<core::affine<dense::configured(core::dense_settings{.units = Units})>>,
                                    typename dense::activations>;
};

}  // namespace strata
