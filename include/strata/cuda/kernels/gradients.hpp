// Helpers of all kernels: the samples of a leaf, how a gradient is stored, and slopes of fused activations.
#pragma once
#include <algorithm>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/fours.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/rounded_four.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/reference/activation_functions.hpp>
#include <type_traits>

namespace strata::machine {

/// The samples of the leaves of one call.
struct rows_of_leaves {
  int leaves;
  long capacity, count;

  template <class T>
  static constexpr rows_of_leaves of(const operands<T>& o) {
    return {o.leaves.count, o.leaves.capacity > 0 ? o.leaves.capacity : o.count, o.count};
  }
  constexpr long begin(long leaf) const { return std::min(leaf * capacity, count); }
  constexpr long size(long leaf) const { return std::min((leaf + 1) * capacity, count) - begin(leaf); }
};

/// The element of an array of a call, which may be narrow (narrow_end).
template <class T, bool IsNarrow>
using element_of_array = std::conditional_t<IsNarrow, bfloat16, T>;

/// An array of a call as one of Element. A constexpr function, so that kernels can call it.
template <class Element, class T>
constexpr Element* array_of(T* all) {
  if constexpr (std::is_same_v<Element, T>)
    return all;
  else
    return reinterpret_cast<Element*>(all);
}
/// The only input, the output and the gradient of the output of a call. X, Y: an element of the input, and of the output.
template <class X, class T>
constexpr const X* input_of(const operands<T>& o) {
  return array_of<const X>(o.x[0]);
}
template <class Y, class T>
constexpr Y* output_of(const operands<T>& o) {
  return array_of<Y>(o.y);
}
template <class Y, class T>
constexpr const Y* output_gradient_of(const operands<T>& o) {
  return array_of<const Y>(o.dy);
}

/// The address of the gradient of one input or parameter. The stride is from leaf to leaf; 0 for inputs, as leaves share none.
template <class T, class Element = T>
struct gradient_place {
  Element* to;
  bool adds;
  long stride;

  static constexpr gradient_place of_input(const operands<T>& o, int k) { return {array_of<Element>(o.dx[k]), o.adds_dx[k], 0}; }
  static constexpr gradient_place of_weight(const operands<T>& o, int k) {
    return {o.dw[k], o.adds_dw, o.leaves.gradient_stride};
  }
  constexpr bool is_wanted() const { return to != nullptr; }
  constexpr void store(long leaf, long i, T value) const {
    Element& element = to[leaf * stride + i];
    element = stored_as<Element>(adds ? element + value : value);
  }
  constexpr void store(long i, T value) const { store(0, i, value); }
  STRATA_DEVICE void store_four(long i, const four<T>& values) const {
    four<T> all = values;
    if (adds)
      for (int j = 0; j < 4; ++j) all.at[j] = to[i + j] + values.at[j];
    machine::store_four(to, i, all);
  }
};

/// An activation that kernels apply to what they store. The gradient before it follows from the output.
template <class A>
inline constexpr bool follows_in_a_kernel = false;
template <elementwise_activation A>
inline constexpr bool follows_in_a_kernel<A> = !activation_function<A>::uses_input;

template <class A, class T>
constexpr T activated(T x) {
  if constexpr (follows_in_a_kernel<A>)
    return activation_function<A>::value(x);
  else
    return x;  // linear
}
/// Activations of which a kernel may round the result and its gradient first: the slope is 0 or 1, and rounding commutes with it.
template <class A>
inline constexpr bool commutes_with_rounding = std::is_same_v<A, linear> || std::is_same_v<A, relu>;
/// The ends of a kernel of products with the precision P: it reads operands. Input gradients are sums.
template <class P>
inline constexpr narrow_end reads_operands{rounds_to_bfloat16<P>, rounds_to_bfloat16<P>, false};
/// A: the activation that follows the product.
template <class P, class A>
inline constexpr narrow_end stores_activations{rounds_to_bfloat16<P> && commutes_with_rounding<A>, false, rounds_to_bfloat16<P>};
/// A(sum + bias) of the units unit to unit + 3. bias: null where there is none.
template <class A, class T>
STRATA_DEVICE four<T> activated_four(const four<T>& sums, const T* bias, long unit) {
  const four<T> biases = bias ? load_four(bias, unit) : four<T>{};
  four<T> all;
  for (int j = 0; j < 4; ++j) all.at[j] = activated<A>(bias ? biases.at[j] + sums.at[j] : sums.at[j]);
  return all;
}
/// The gradient of element i before the activation A. Y: an element of dy and y. Of narrow arrays four_at takes the slope of relu
/// to be 1 where the result is not 0, so that an infinite gradient ends at a 0.
template <class A, class T, class Y = T>
struct gradient_before {
  const Y *dy, *y;
  static constexpr gradient_before of(const operands<T>& o) { return {output_gradient_of<Y>(o), output_of<Y>(o)}; }
  constexpr T operator[](long i) const {
    if constexpr (follows_in_a_kernel<A>)
      return dy[i] * activation_function<A>::derivative(T{}, T(y[i]));
    else
      return dy[i];
  }
  STRATA_DEVICE auto four_at(long i) const {
    auto all = load_four(dy, i);
    if constexpr (std::is_same_v<Y, bfloat16>) {
      static_assert(commutes_with_rounding<A>);
      if constexpr (std::is_same_v<A, relu>) all = all & mask_of_nonzero(load_four(y, i));
    } else if constexpr (follows_in_a_kernel<A>) {
      const four<T> results = load_four(y, i);
      for (int j = 0; j < 4; ++j) all.at[j] *= activation_function<A>::derivative(T{}, results.at[j]);
    }
    return all;
  }
};

/// Elements i to i + 3: of an array or, where `from` has a function four_at(i), what it returns.
template <class From>
STRATA_DEVICE auto four_at(const From& from, long i) {
  if constexpr (requires { from.four_at(i); })
    return from.four_at(i);
  else
    return load_four(from, i);
}

/// The gradient of a bias, filter by filter: dz has `filters` elements per pixel and `pixels` per sample.
template <class Dz, class T>
struct bias_gradient {
  using value = T;
  static constexpr int threads = 128, neighbours = 8;
  rows_of_leaves rows;
  Dz dz;
  gradient_place<T> db;
  long filters, pixels;

  constexpr long terms(long sum) const { return rows.size(sum / filters) * pixels; }
  constexpr T term(long sum, long i) const { return dz[(rows.begin(sum / filters) * pixels + i) * filters + sum % filters]; }
  constexpr void store(long sum, T v) const { db.store(sum / filters, sum % filters, v); }
};
template <class Dz, class T>
void store_bias_gradient(const queue& q, rows_of_leaves rows, const Dz& dz, gradient_place<T> db, int filters, int pixels) {
  if (db.is_wanted()) for_each_sum(q, long{rows.leaves} * filters, bias_gradient<Dz, T>{rows, dz, db, filters, pixels});
}

}  // namespace strata::machine
