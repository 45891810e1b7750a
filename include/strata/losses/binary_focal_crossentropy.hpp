// prediction: any shape, a probability per element  truth: the same, 0 or 1
#pragma once
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/element_wise.hpp>
#include <strata/losses/focal.hpp>

namespace strata {

namespace core {
struct binary_focal_settings {
  bool from_logits = false;
  decimal label_smoothing{}, alpha{25, -2}, gamma = 2;
  bool class_balancing = false;
};
}  // namespace core

/// Mean over the elements of q^gamma * binary_crossentropy, where q = 1 - p for class 1 and p for class 0: elements that are
/// predicted well weigh little (Lin et al. 2017). With from_logits, p is the sigmoid of the prediction, and nothing is clamped.
/// Options: from_logits, label_smoothing, focal_gamma; focal_alpha counts only with apply_class_balancing.
/// https://keras.io/api/losses/probabilistic_losses/#binaryfocalcrossentropy-class
template <class... Options>
struct binary_focal_crossentropy : core::layer_options<core::binary_focal_settings, Options...>,
                                   detail::element_wise<binary_focal_crossentropy<Options...>> {
  static constexpr auto name = "binary_focal_crossentropy";
  static constexpr core::binary_focal_settings settings = binary_focal_crossentropy::configured({});
  static constexpr core::operation_traits traits{.takes = settings.from_logits ? core::value_range::real
                                                                               : core::value_range::from_0_to_1};
  static constexpr core::expected_shape output_shape(shape in) { return detail::shape_for_focal(settings, in); }

  template <class M, class V = typename M::value>
  static constexpr V value_of(V prediction, V truth) {
    const element<M> e(prediction, truth);
    return e.weight() * detail::power<M>(e.doubt(), gamma) * e.crossentropy;
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V prediction, V truth) {
    const element<M> e(prediction, truth);
    const V of_doubt =
        M::rounded(detail::slope_of_power<M>(e.doubt(), gamma) * (e.one - e.t - e.t) * e.crossentropy * e.slope_of_p());
    return e.weight() * (of_doubt + M::rounded(detail::power<M>(e.doubt(), gamma) * e.slope_of_crossentropy()));
  }

 private:
  static constexpr double gamma = settings.gamma.value(), alpha = settings.alpha.value();

  template <class M>
  struct element {
    using T = typename M::number;
    using V = typename M::value;
    static constexpr T one = T(1);
    V prediction, t, p, crossentropy;

    constexpr element(V x, V truth) : prediction(x), t(truth) {
      if constexpr (settings.label_smoothing.value() != 0)
        t = M::rounded(truth * T(1 - settings.label_smoothing.value())) + T(settings.label_smoothing.value() / 2);
      if constexpr (settings.from_logits) {
        const V e = M::exp_of_negative(-detail::magnitude<M>(x)), larger = one / (one + e), smaller = e * larger;
        p = x > V{} ? larger : smaller;
        crossentropy = detail::at_least<M>(x, 0) - M::rounded(x * t) + M::log1p_of_fraction(e);
      } else {
        p = x;
        const V inside = clamped();
        crossentropy = -(M::rounded(t * M::log(inside)) + M::rounded((one - t) * M::log(one - inside)));
      }
    }
    /// The probability of the wrong class.
    constexpr V doubt() const { return M::rounded(t * (one - p)) + M::rounded((one - t) * p); }
    constexpr V weight() const {
      if constexpr (settings.class_balancing)
        return M::rounded(t * T(alpha)) + M::rounded((one - t) * T(1 - alpha));
      else
        return detail::spread_over<M>(1);
    }
    /// The derivative of p by the prediction.
    constexpr V slope_of_p() const {
      if constexpr (settings.from_logits)
        return p * (one - p);
      else
        return detail::spread_over<M>(1);
    }
    constexpr V slope_of_crossentropy() const {
      if constexpr (settings.from_logits) {
        return p - t;
      } else {
        const V inside = clamped(), slope = (p - t) / (inside * (one - inside)), unless_above = inside < p ? V{} : slope;
        return inside > p ? V{} : unless_above;
      }
    }

   private:
    constexpr V clamped() const { return detail::at_most<M>(detail::at_least<M>(prediction, 1e-7), 1 - 1e-7); }
  };
};

}  // namespace strata
