// A sliding window along one axis: the arithmetic of convolutions and pooling.
#pragma once
#include <strata/base/shape.hpp>

namespace strata::core {

/// Windows of `kernel` taps at distance `dilation`. They begin every `stride` elements. With `same`, the axis is padded so that
/// out = ceil(in / stride).
struct window_axis {
  int in, kernel, stride, dilation;
  bool same;

  /// Elements from the first tap to the last, both included.
  constexpr int reach() const { return (kernel - 1) * dilation + 1; }
  constexpr int out() const { return same ? (in + stride - 1) / stride : (in - reach()) / stride + 1; }
  /// Padding before the first element. An odd total has one more at the end, as in TensorFlow.
  constexpr int padding() const {
    const int total = (out() - 1) * stride + reach() - in;
    return same && total > 0 ? total / 2 : 0;
  }
  /// The element under the first tap of window i; negative in the padding.
  constexpr int begin(int i) const { return i * stride - padding(); }
  constexpr bool fits() const { return same || in >= reach(); }
};

}  // namespace strata::core
