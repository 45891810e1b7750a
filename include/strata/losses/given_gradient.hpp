// prediction: any shape  truth: the same
#pragma once
#include <strata/losses/element_wise.hpp>

namespace strata {

/// The sum over the elements of prediction * truth, whose gradient is the truth: for gradients that something else has computed.
/// With it, gradients of inputs are products of a vector with the Jacobian matrix: the truth is that vector.
struct given_gradient : detail::element_wise<given_gradient> {
  static constexpr auto name = "given_gradient";
  static constexpr bool adds_elements = true;

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    return p * t;
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V, V t) {
    return t;
  }
};

}  // namespace strata
