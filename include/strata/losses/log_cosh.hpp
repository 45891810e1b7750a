// prediction: any shape  truth: the same
#pragma once
#include <numbers>
#include <strata/losses/element_wise.hpp>

namespace strata {

/// Mean over the elements of log(cosh(prediction - truth)): about e^2 / 2 for small errors and |e| - log 2 for large ones. It
/// does not overflow.  https://keras.io/api/losses/regression_losses/#logcosh-class
struct log_cosh : detail::element_wise<log_cosh> {
  static constexpr auto name = "log_cosh";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    using T = typename M::number;
    const V size = detail::magnitude<M>(p - t);
    return size + M::log1p_of_fraction(M::exp_of_negative(T(-2) * size)) - std::numbers::ln2_v<T>;
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    return M::tanh(p - t);
  }
};

}  // namespace strata
