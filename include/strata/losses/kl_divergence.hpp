// prediction: (C), a probability per class  truth: the same
#pragma once
#include <strata/losses/element_wise.hpp>
#include <strata/losses/rows.hpp>

namespace strata {

/// The sum over the classes of t log(t / p), where p and t are prediction and truth, each clamped to [1e-7, 1] (Kullback and
/// Leibler 1951). The gradient is 0 where p is clamped.  https://keras.io/api/losses/probabilistic_losses/#kldivergence-class
struct kl_divergence : detail::element_wise<kl_divergence> {
  static constexpr auto name = "kl_divergence";
  static constexpr bool adds_elements = true;
  static constexpr core::expected_shape output_shape(shape in) { return detail::shape_of_row(in); }

  template <class M, class V = typename M::value>
  static constexpr V value_of(V p, V t) {
    const V share = clamp<M>(t);
    return share * M::log(share / clamp<M>(p));
  }
  template <class M, class V = typename M::value>
  static constexpr V slope_of(V p, V t) {
    const V inside = clamp<M>(p), slope = -clamp<M>(t) / inside, unless_below = inside > p ? V{} : slope;
    return inside < p ? V{} : unless_below;
  }

 private:
  template <class M, class V = typename M::value>
  static constexpr V clamp(V p) {
    return detail::at_most<M>(detail::at_least<M>(p, 1e-7), 1);
  }
};

}  // namespace strata
