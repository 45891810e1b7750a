// The type of MNIST and of synthetic_digits.
#pragma once
#include <cstdint>
#include <strata/data/core/array.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/scale.hpp>
#include <utility>
#include <vector>

namespace strata::data {

inline constexpr shape digit_shape{28, 28, 1};

/// Images of bytes, scaled to [0, 1]; sparse labels 0 ... 9.
using digits = decltype(from_tensor_slices(std::declval<array<std::uint8_t, digit_shape>>(), std::declval<std::vector<int>>()) |
                        scale(1.0 / 255));

}  // namespace strata::data
