// prediction: any shape  truth: the same, -1 or 1, or 0 or 1
#pragma once
#include <strata/losses/element_wise.hpp>

namespace strata {

namespace detail {
/// The label as -1 or 1. 0 counts as -1, so that labels may also be 0 and 1.
template <class M>
constexpr typename M::value sign_of_label(typename M::value t) {
  return t == typename M::value{} ? spread_over<M>(-1) : t;
}
/// max(1 - t p, 0)
template <class M>
constexpr typename M::value missing_margin(typename M::value p, typename M::value t) {
  return at_least<M>(typename M::number(1) - M::rounded(sign_of_label<M>(t) * p), 0);
}
}  // namespace detail

/// Mean over the elements of max(1 - t p, 0), where t is the truth, -1 or 1. A truth of 0 is -1; in Keras only if all of the
/// batch are 0 or 1.  https://keras.io/api/losses/hinge_losses/#hinge-class
struct hinge : detail::element_wise<hinge> {
  static constexpr auto name = "hinge";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    return detail::missing_margin<M>(p, t);
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    return detail::missing_margin<M>(p, t) > V{} ? -detail::sign_of_label<M>(t) : V{};
  }
};

/// Mean over the elements of max(1 - t p, 0)^2, with the truth as in `hinge`.
/// https://keras.io/api/losses/hinge_losses/#squaredhinge-class
struct squared_hinge : detail::element_wise<squared_hinge> {
  static constexpr auto name = "squared_hinge";

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    const V missing = detail::missing_margin<M>(p, t);
    return missing * missing;
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    return typename M::number(-2) * detail::sign_of_label<M>(t) * detail::missing_margin<M>(p, t);
  }
};

}  // namespace strata
