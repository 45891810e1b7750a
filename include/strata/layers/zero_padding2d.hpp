// zero_padding2d<...>: zeros around an image.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/refused.hpp>

namespace strata {

namespace reasons {
inline constexpr reason zero_padding2d_takes_height_width_channels{"zero_padding2d takes (height, width, channels)"};
inline constexpr reason zero_padding2d_must_not_be_negative{"the numbers of zero_padding2d must be at least 0"};
inline constexpr reason zero_padding2d_takes_one_two_or_four_numbers{
    "zero_padding2d takes one number, or <vertical, horizontal>, or <top, bottom, left, right>"};
}  // namespace reasons

namespace core {
struct padding_settings {
  int top, bottom, left, right;

  constexpr expected_shape output_shape(shape in) const {
    if (top < 0 || bottom < 0 || left < 0 || right < 0) return reasons::zero_padding2d_must_not_be_negative;
    if (in.rank() != 3) return reasons::zero_padding2d_takes_height_width_channels;
    return shape{top + in[0] + bottom, left + in[1] + right, in[2]};
  }
};

/// in: (H, W, C)  out: (top + H + bottom, left + W + right, C)
template <padding_settings S>
struct zero_padding {
  static constexpr auto name = "zero_padding";
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};
}  // namespace core

namespace detail {
template <int... P>
constexpr auto padding_operation() {
  constexpr int n = sizeof...(P), p[n + 1] = {P..., 0};
  if constexpr (n == 1)
    return zero_padding<padding_settings{.top = p[0], .bottom = p[0], .left = p[0], .right = p[0]}>{};
  else if constexpr (n == 2)
    return zero_padding<padding_settings{.top = p[0], .bottom = p[0], .left = p[1], .right = p[1]}>{};
  else if constexpr (n == 4)
    return zero_padding<padding_settings{.top = p[0], .bottom = p[1], .left = p[2], .right = p[3]}>{};
  else
    return refused<reasons::zero_padding2d_takes_one_two_or_four_numbers>{};
}
}  // namespace detail

/// in: (H, W, C)  out: (top + H + bottom, left + W + right, C).  zero_padding2d<1>, <vertical, horizontal> or <top, bottom, left,
/// right>. https://keras.io/api/layers/reshaping_layers/zero_padding2d
template <int... P>
struct zero_padding2d {
  static constexpr auto name = "zero_padding2d", class_name = "ZeroPadding2D";
  using operations = core::type_list<decltype(detail::padding_operation<P...>())>;
};

}  // namespace strata
