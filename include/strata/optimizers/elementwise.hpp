// What optimizer rules need beyond arithmetic, for a number or a vector of numbers.
#pragma once
#include <cmath>

namespace strata::detail {

/// Specialised by backends for their vectors.
template <class V>
struct elementwise {
  static V square_root(V x) { return std::sqrt(x); }
  static constexpr V rounded(V x) { return x; }
};

/// a * b, rounded before anything is added to it. Compilers may fuse a product with a sum, and do so here but not there: the
/// bits of the weights would depend on compiler, flags and machine.
template <class V, class W>
constexpr V product(V a, W b) {
  return elementwise<V>::rounded(a * b);
}

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
