// A window that slides along an axis, for code that runs on a device.
#pragma once
#include <strata/layers/window.hpp>

namespace strata::machine {

/// The members of a window_axis as constants. Device code cannot take the address of a constexpr object: where it needs one, as
/// in a call of a member function, nvcc compiles a trap instead, without a warning.
template <window_axis Axis>
struct constant_axis {
  static constexpr int in = Axis.in, kernel = Axis.kernel, stride = Axis.stride, dilation = Axis.dilation, out = Axis.out(),
                       padding = Axis.padding();
  /// True if no window extends beyond an edge.
  static constexpr bool stays_inside = padding == 0 && (out - 1) * stride + (kernel - 1) * dilation < in;
  /// The element under the first tap of window i; negative in the padding.
  static constexpr int begin(int i) { return i * stride - padding; }
  /// The windows [first_over, end_over) reach over an element, if their taps are neighbours.
  static constexpr int first_over(int element) {
    const int at = element + padding - kernel;
    return at < 0 ? 0 : at / stride + 1;
  }
  static constexpr int end_over(int element) {
    const int end = (element + padding) / stride + 1;
    return end < out ? end : out;
  }
};

}  // namespace strata::machine
