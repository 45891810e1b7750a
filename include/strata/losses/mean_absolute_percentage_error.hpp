// prediction: any shape  truth: the same
#pragma once
#include <strata/losses/element_wise.hpp>

namespace strata {

/// 100 times the mean over the elements of |prediction - truth| / max(|truth|, 1e-7). The gradient is 0 where they are equal.
/// https://keras.io/api/losses/regression_losses/#meanabsolutepercentageerror-class
struct mean_absolute_percentage_error : detail::element_wise<mean_absolute_percentage_error> {
  static constexpr auto name = "mean_absolute_percentage_error";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    return detail::magnitude<M>(p - t) * percent_of<M>(t);
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    const V error = p - t, percent = percent_of<M>(t), not_above = error < V{} ? -percent : error;  // zero or nan
    return error > V{} ? percent : not_above;
  }

 private:
  template <class M, class V = typename M::value>
  static constexpr V percent_of(V t) {
    return typename M::number(100) / detail::at_least<M>(detail::magnitude<M>(t), 1e-7);
  }
};

using mape = mean_absolute_percentage_error;

}  // namespace strata
