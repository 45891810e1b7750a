// Starting a gradient: the first to write it stores, later ones add.
#pragma once
#include <strata/kernel/kernel.hpp>

namespace strata::detail {

/// Zeroes the gradient of input k, unless nobody wants it or others have written to it; the kernel then only adds.
template <class T>
constexpr T* begin_input_gradient(const operands<T>& o, int k, int size) {
  if (o.dx[k] && !o.adds_dx[k])
    for (int i = 0; i < o.count * size; ++i) o.dx[k][i] = T{};
  return o.dx[k];
}

/// The same for parameter k of an operation; `size` elements.
template <class T>
constexpr T* begin_weight_gradient(const operands<T>& o, int k, int size) {
  if (o.dw[k] && !o.adds_dw)
    for (int i = 0; i < size; ++i) o.dw[k][i] = T{};
  return o.dw[k];
}

}  // namespace strata::detail
