// What a sliding window sees along one axis: convolutions and pooling share this arithmetic.
#pragma once
#include <strata/base/shape.hpp>

namespace strata {

/// `kernel` taps, `dilation` apart, every `stride`; with `same`, the axis is padded so that out = ceil(in / stride).
struct window_axis {
  int in, kernel, stride, dilation;
  bool same;

  /// Elements from the first tap to the last.
  constexpr int reach() const { return (kernel - 1) * dilation + 1; }
  constexpr int out() const { return same ? (in + stride - 1) / stride : (in - reach()) / stride + 1; }
  /// Padding before the first element; the odd one goes to the end, as in TensorFlow.
  constexpr int padding() const {
    const int total = (out() - 1) * stride + reach() - in;
    return same && total > 0 ? total / 2 : 0;
  }
  /// The element under the first tap of window i; negative in the padding.
  constexpr int begin(int i) const { return i * stride - padding(); }
  constexpr bool fits() const { return same || in >= reach(); }
};

}  // namespace strata
