// The type of MNIST and of synthetic_digits.
#pragma once
#include <cstdint>
#include <strata/data/core/array.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/scale.hpp>

namespace strata::data {

inline constexpr shape digit_shape{28, 28, 1};

namespace detail {
using digit_images = array<std::uint8_t, digit_shape>;
}

/// Images of bytes, scaled to [0, 1]; sparse labels 0 ... 9: from_tensor_slices(images, labels) | scale(1.0 / 255). The type is
/// spelled out, because an alias of a decltype would be compiled in programs that do not use it.
using digits = rows_view<tensor_slices<detail::digit_images, sparse_labels>,
                         detail::scaled_rows<detail::tensor_rows<detail::digit_images, sparse_labels>>>;

}  // namespace strata::data
