// zeros, ones, constant<value>: every element has the same value.  https://keras.io/api/layers/initializers
#pragma once
#include <algorithm>
#include <strata/base/decimal.hpp>
#include <strata/concepts/initializer.hpp>

namespace strata {

struct zeros {
  static constexpr auto name = "zeros";
  static void fill(std::span<double> values, shape, core::philox) { std::fill(values.begin(), values.end(), 0.0); }
};

struct ones {
  static constexpr auto name = "ones";
  static void fill(std::span<double> values, shape, core::philox) { std::fill(values.begin(), values.end(), 1.0); }
};

template <core::decimal Value = core::decimal(0)>
struct constant {
  static constexpr auto name = "constant";
  static void fill(std::span<double> values, shape, core::philox) { std::fill(values.begin(), values.end(), Value.value()); }
};

}  // namespace strata
