// Uniform, normal and truncated normal random numbers from a counter-based generator.
#pragma once
#include <cmath>
#include <numbers>
#include <span>
#include <strata/base/multiply_add.hpp>
#include <strata/base/random.hpp>

namespace strata::detail {

/// Standard deviation of a standard normal distribution truncated at two standard deviations.
inline constexpr double truncated_deviation = 0.87962566103423978;

/// Uniform in [low, high).
[[gnu::cold]] inline void fill_uniform(std::span<double> values, double low, double high, philox random) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = multiply_add(high - low, random.uniform(i), low);
}

/// Draw number `attempt` for element i, by the Box-Muller method.
[[gnu::cold]] inline double standard_normal(philox random, std::uint64_t i, std::uint64_t attempt = 0) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform(i, 2 * attempt)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(i, 2 * attempt + 1));
}

[[gnu::cold]] inline void fill_normal(std::span<double> values, double mean, double deviation, philox random) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = multiply_add(deviation, standard_normal(random, i), mean);
}

/// Values further than two standard deviations from the mean are drawn again.
[[gnu::cold]] inline void fill_truncated_normal(std::span<double> values, double deviation, philox random, double mean = 0) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    double z = standard_normal(random, i);
    for (std::uint64_t attempt = 1; z < -2 || z > 2; ++attempt) z = standard_normal(random, i, attempt);
    values[i] = multiply_add(deviation, z, mean);
  }
}

}  // namespace strata::detail
