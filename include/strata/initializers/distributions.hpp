// Uniform, normal and truncated normal numbers from a counter-based generator.
#pragma once
#include <cmath>
#include <numbers>
#include <span>
#include <strata/base/random.hpp>

namespace strata::detail {

/// Standard deviation of a standard normal cut off at two standard deviations.
inline constexpr double truncated_deviation = 0.87962566103423978;

[[gnu::cold]] inline void fill_uniform(std::span<double> values, double low, double high, philox random) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * random.uniform(i);
}

/// Box-Muller; `attempt` numbers the draws of one element.
[[gnu::cold]] inline double standard_normal(philox random, std::uint64_t i, std::uint64_t attempt = 0) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform(i, 2 * attempt)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(i, 2 * attempt + 1));
}

[[gnu::cold]] inline void fill_normal(std::span<double> values, double mean, double deviation, philox random) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = mean + deviation * standard_normal(random, i);
}

/// Draws again whatever lies beyond two standard deviations.
[[gnu::cold]] inline void fill_truncated_normal(std::span<double> values, double deviation, philox random, double mean = 0) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    double z = standard_normal(random, i);
    for (std::uint64_t attempt = 1; z < -2 || z > 2; ++attempt) z = standard_normal(random, i, attempt);
    values[i] = mean + deviation * z;
  }
}

}  // namespace strata::detail
