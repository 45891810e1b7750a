// LeCun et al. 1998, for selu: variance 1 / fan_in
#pragma once
#include <cmath>
#include <strata/initializers/distributions.hpp>
#include <strata/initializers/fans.hpp>

namespace strata {

struct lecun_uniform {
  static constexpr auto name = "lecun_uniform";
  static void fill(std::span<double> values, shape s, philox random) {
    const double limit = std::sqrt(3 / fans(s).in);
    detail::fill_uniform(values, -limit, limit, random);
  }
};

/// Truncated at two standard deviations, then rescaled to the variance, as in Keras.
struct lecun_normal {
  static constexpr auto name = "lecun_normal";
  static void fill(std::span<double> values, shape s, philox random) {
    detail::fill_truncated_normal(values, std::sqrt(1 / fans(s).in) / detail::truncated_deviation, random);
  }
};

}  // namespace strata
