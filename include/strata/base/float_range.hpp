// The range of settings. Networks use their settings as float, and steps flush denormals to 0.
#pragma once
#include <limits>

namespace strata::detail {

inline constexpr double largest_float = double(std::numeric_limits<float>::max());
inline constexpr double smallest_float = double(std::numeric_limits<float>::min());  // the smallest normal float

/// Whether x is at least 0 and finite as float. False for nan.
constexpr bool is_float_from_0(double x) { return x >= 0 && x <= largest_float; }
/// Whether x is above 0 and finite as float. False for nan.
constexpr bool is_positive_float(double x) { return x >= smallest_float && x <= largest_float; }

}  // namespace strata::detail
