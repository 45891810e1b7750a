// zero_padding2d<...>: zeros around an image.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/refused.hpp>
#include <type_traits>

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

  constexpr bool has_negative() const { return top < 0 || bottom < 0 || left < 0 || right < 0; }
  constexpr padding_settings operator-() const { return {-top, -bottom, -left, -right}; }
  constexpr expected_shape output_shape(shape in) const {
    if (in.rank() != 3) return reasons::zero_padding2d_takes_height_width_channels;
    return shape{top + in[0] + bottom, left + in[1] + right, in[2]};
  }
};

/// A negative number crops the image, so that its kernels compute cropping2d, too.
/// in: (H, W, C)  out: (top + H + bottom, left + W + right, C)
template <padding_settings S>
struct zero_padding {
  static constexpr auto name = "zero_padding";
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};
}  // namespace core

namespace detail {
/// An operation with settings for all sides of an image, from one, two or four numbers.
template <template <core::padding_settings> class Operation, const core::reason& Otherwise, int... N>
struct operation_of_sides {
  using type = refused<Otherwise>;
};
template <template <core::padding_settings> class Operation, const core::reason& Otherwise, int N>
struct operation_of_sides<Operation, Otherwise, N> {
  using type = Operation<core::padding_settings{N, N, N, N}>;
};
template <template <core::padding_settings> class Operation, const core::reason& Otherwise, int Vertical, int Horizontal>
struct operation_of_sides<Operation, Otherwise, Vertical, Horizontal> {
  using type = Operation<core::padding_settings{Vertical, Vertical, Horizontal, Horizontal}>;
};
template <template <core::padding_settings> class Operation, const core::reason& Otherwise, int Top, int Bottom, int Left,
          int Right>
struct operation_of_sides<Operation, Otherwise, Top, Bottom, Left, Right> {
  using type = Operation<core::padding_settings{Top, Bottom, Left, Right}>;
};
}  // namespace detail

/// in: (H, W, C)  out: (top + H + bottom, left + W + right, C).  zero_padding2d<1>, <vertical, horizontal> or <top, bottom, left,
/// right>. https://keras.io/api/layers/reshaping_layers/zero_padding2d
template <int... P>
struct zero_padding2d {
  static constexpr auto name = "zero_padding2d", class_name = "ZeroPadding2D";
  using operations = core::type_list<typename std::conditional_t<
      ((P < 0) || ...), std::type_identity<detail::refused<reasons::zero_padding2d_must_not_be_negative>>,
      detail::operation_of_sides<core::zero_padding, reasons::zero_padding2d_takes_one_two_or_four_numbers, P...>>::type>;
};

}  // namespace strata
