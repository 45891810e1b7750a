// Starting a gradient: the first kernel that writes it stores, later ones add.
#pragma once
#include <strata/kernel/kernel.hpp>

namespace strata::detail {

/// Zeroes the gradient of input k, so that the kernel can add. Does nothing if the gradient is not needed or already stored.
/// Returns o.dx[k].
template <class T>
constexpr T* begin_input_gradient(const operands<T>& o, int k, int size) {
  if (o.dx[k] && !o.adds_dx[k])
    for (int i = 0; i < o.count * size; ++i) o.dx[k][i] = T{};
  return o.dx[k];
}

/// The same for parameter k of an operation, with `size` elements.
template <class T>
constexpr T* begin_weight_gradient(const operands<T>& o, int k, int size) {
  if (o.dw[k] && !o.adds_dw)
    for (int i = 0; i < size; ++i) o.dw[k][i] = T{};
  return o.dw[k];
}

}  // namespace strata::detail
