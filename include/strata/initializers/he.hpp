// He et al. 2015, for relu: variance 2 / fan_in.  https://keras.io/api/layers/initializers
#pragma once
#include <cmath>
#include <strata/initializers/distributions.hpp>
#include <strata/initializers/fans.hpp>

namespace strata {

/// Uniform in [-limit, limit) with limit = sqrt(6 / fan_in).
struct he_uniform {
  static constexpr auto name = "he_uniform";
  static void fill(std::span<double> values, shape s, core::philox random) {
    const double limit = std::sqrt(6 / core::fans(s).in);
    detail::fill_uniform(values, -limit, limit, random);
  }
};

/// Normal, truncated at two standard deviations and rescaled so that the variance is that above, as in Keras.
struct he_normal {
  static constexpr auto name = "he_normal";
  static void fill(std::span<double> values, shape s, core::philox random) {
    detail::fill_truncated_normal(values, std::sqrt(2 / core::fans(s).in) / detail::truncated_deviation, random);
  }
};

}  // namespace strata
