// What optimizer rules need beyond arithmetic, for a number or a vector of numbers.
#pragma once
#include <cmath>

namespace strata::detail {

/// Specialised by backends for their vectors.
template <class V>
struct elementwise {
  static V square_root(V x) { return std::sqrt(x); }
};

template <class V>
V square_root(V x) {
  return elementwise<V>::square_root(x);
}
template <class V>
constexpr V larger(V a, V b) {
  return a > b ? a : b;
}
/// The number s in each element.
template <class V, class T>
constexpr V spread(T s) {
  return s - V{};
}

}  // namespace strata::detail
