// Shapes, and the reasons why a shape is refused.
#pragma once
#include <strata/base/reason.hpp>

namespace strata {

/// Extents of one sample, channels last: shape{28, 28, 1}. A flat aggregate of scalars, because nvcc writes the template
/// arguments of a __global__ function back into host code, where it can spell neither a constructor nor an array member.
struct shape {
  int d0 = 0, d1 = 0, d2 = 0, d3 = 0;

  constexpr int& operator[](int i) { return i == 0 ? d0 : i == 1 ? d1 : i == 2 ? d2 : d3; }
  constexpr int operator[](int i) const { return i == 0 ? d0 : i == 1 ? d1 : i == 2 ? d2 : d3; }
  constexpr int rank() const { return d0 <= 0 ? 0 : d1 <= 0 ? 1 : d2 <= 0 ? 2 : d3 <= 0 ? 3 : 4; }
  /// Number of elements; 1 for rank 0.
  constexpr int size() const {
    int n = 1;
    for (int i = 0; i < rank(); ++i) n *= (*this)[i];
    return n;
  }
  /// The last extent: the channels.
  constexpr int last() const { return (*this)[rank() - 1]; }

  friend constexpr bool operator==(const shape&, const shape&) = default;
};

namespace core {
/// expected<shape, reason>: C++20 has no std::expected. (A flag, because g++ -fsanitize=undefined cannot compare addresses
/// with null in constant expressions.)
struct expected_shape {
  shape value{};
  const reason* why = nullptr;
  bool refused = false;
  constexpr expected_shape(shape s) : value(s) {}
  constexpr expected_shape(const reason& r) : why(&r), refused(true) {}
  /// The shape that would fit, for the message.
  constexpr expected_shape(const reason& r, shape wanted) : value(wanted), why(&r), refused(true) {}
};

}  // namespace core

}  // namespace strata
