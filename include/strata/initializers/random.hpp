// random_uniform, random_normal, truncated_normal: the same distribution for every shape.
// https://keras.io/api/layers/initializers
#pragma once
#include <strata/base/decimal.hpp>
#include <strata/concepts/initializer.hpp>
#include <strata/initializers/distributions.hpp>

namespace strata {

/// Uniform in [Min, Max).
template <core::decimal Min = core::decimal(-5, -2), core::decimal Max = core::decimal(5, -2)>
struct random_uniform {
  static_assert(Min.value() <= Max.value(), "random_uniform<min, max>: min must not exceed max");
  static constexpr auto name = "random_uniform";
  static void fill(std::span<double> values, shape, core::philox random) {
    detail::fill_uniform(values, Min.value(), Max.value(), random);
  }
};

/// Normal with this mean and standard deviation.
template <core::decimal Mean = core::decimal(0), core::decimal Deviation = core::decimal(5, -2)>
struct random_normal {
  static_assert(Deviation.value() >= 0, "random_normal<mean, deviation>: the deviation must be at least 0");
  static constexpr auto name = "random_normal";
  static void fill(std::span<double> values, shape, core::philox random) {
    detail::fill_normal(values, Mean.value(), Deviation.value(), random);
  }
};

/// Normal, truncated at two deviations from the mean. It is not rescaled, so its standard deviation is 0.88 * Deviation.
template <core::decimal Mean = core::decimal(0), core::decimal Deviation = core::decimal(5, -2)>
struct truncated_normal {
  static_assert(Deviation.value() >= 0, "truncated_normal<mean, deviation>: the deviation must be at least 0");
  static constexpr auto name = "truncated_normal";
  static void fill(std::span<double> values, shape, core::philox random) {
    detail::fill_truncated_normal(values, Deviation.value(), random, Mean.value());
  }
};

}  // namespace strata
