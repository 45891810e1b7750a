// prediction: any shape, greater than 0  truth: the same, e.g. counts
#pragma once
#include <strata/losses/element_wise.hpp>

namespace strata {

/// Mean over the elements of p - t log(p + 1e-7), where p is the prediction and t the truth.
/// https://keras.io/api/losses/probabilistic_losses/#poisson-class
struct poisson : detail::element_wise<poisson> {
  static constexpr auto name = "poisson";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    return p - M::rounded(t * M::log(p + typename M::number(1e-7)));
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    using T = typename M::number;
    return T(1) - t / (p + T(1e-7));
  }
};

}  // namespace strata
