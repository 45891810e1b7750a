// LeCun et al. 1998, for selu: variance 1 / fan_in.  https://keras.io/api/layers/initializers
#pragma once
#include <cmath>
#include <strata/initializers/distributions.hpp>
#include <strata/initializers/fans.hpp>

namespace strata {

/// Uniform in [-limit, limit) with limit = sqrt(3 / fan_in).
struct lecun_uniform {
  static constexpr auto name = "lecun_uniform";
  static void fill(std::span<double> values, shape s, core::philox random) {
    const double limit = std::sqrt(3 / core::fans(s).in);
    detail::fill_uniform(values, -limit, limit, random);
  }
};

/// Normal, truncated at two standard deviations and rescaled so that the variance is that above, as in Keras.
struct lecun_normal {
  static constexpr auto name = "lecun_normal";
  static void fill(std::span<double> values, shape s, core::philox random) {
    detail::fill_truncated_normal(values, std::sqrt(1 / core::fans(s).in) / detail::truncated_deviation, random);
  }
};

}  // namespace strata
