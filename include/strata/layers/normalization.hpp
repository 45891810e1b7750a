// normalization: brings each feature of the data to mean 0 and variance 1.
#pragma once
#include <array>
#include <strata/initializers/constant.hpp>
#include <strata/layers/normalization_options.hpp>

namespace strata {

/// y = (x - mean) / sqrt(max(variance, 1e-14)) per feature, the last axis. trainer::adapt computes mean and variance from a data
/// set; they are not trained. Before that, mean is 0 and variance 1.  in: (..., C)  out: (..., C)  mean, variance: (C)
/// Keras' layer also holds `count`, a number that it does not use: strata has no such parameter.
/// https://keras.io/api/layers/preprocessing_layers/numerical/normalization
struct normalization {
  static constexpr auto name = "normalization", class_name = "Normalization";
  static constexpr core::operation_traits traits{.makes = core::value_range::real};
  static constexpr double least_variance = 1e-14;

  static constexpr core::expected_shape output_shape(shape in) {
    if (in.rank() < 1) return reasons::normalization_takes_at_least_one_extent;
    return in;
  }
  static constexpr auto parameters(shape in) {
    const shape features{in.last()};
    return std::array{core::parameter{"mean", features, &core::info_of_initializer<zeros>, false},
                      core::parameter{"variance", features, &core::info_of_initializer<ones>, false}};
  }
};

}  // namespace strata
