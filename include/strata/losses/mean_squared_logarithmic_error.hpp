// prediction: any shape, at least 0  truth: the same
#pragma once
#include <strata/losses/element_wise.hpp>

namespace strata {

/// Mean over the elements of (log(1 + p) - log(1 + t))^2, where p and t are prediction and truth, each at least 1e-7. The
/// gradient is 0 where a prediction is smaller.  https://keras.io/api/losses/regression_losses/#meansquaredlogarithmicerror-class
struct mean_squared_logarithmic_error : detail::element_wise<mean_squared_logarithmic_error> {
  static constexpr auto name = "mean_squared_logarithmic_error";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    const V error = error_of<M>(p, t);
    return error * error;
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    using T = typename M::number;
    const V slope = T(2) * error_of<M>(p, t) / (T(1) + detail::at_least<M>(p, 0));
    return p < T(1e-7) ? V{} : slope;
  }

 private:
  template <class M, class V = typename M::value>
  static constexpr V error_of(V p, V t) {
    constexpr typename M::number one = 1;
    return M::log(detail::at_least<M>(p, 1e-7) + one) - M::log(detail::at_least<M>(t, 1e-7) + one);
  }
};

using msle = mean_squared_logarithmic_error;

}  // namespace strata
