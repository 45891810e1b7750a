// Options of losses are types: categorical_crossentropy<from_logits, label_smoothing<0.1_r>>.
#pragma once
#include <strata/layers/options.hpp>

namespace strata {

/// The predictions are logits: the loss applies softmax or sigmoid, and the network must not end with one.
struct from_logits {
  static constexpr void configure(auto& settings)
    requires requires { settings.from_logits; }
  {
    settings.from_logits = true;
  }
};

/// Mixes the labels with the uniform distribution: (1 - Amount) * label + Amount / classes (Szegedy et al. 2016).
template <core::decimal Amount>
struct label_smoothing {
  static constexpr void configure(auto& settings)
    requires requires { settings.label_smoothing; }
  {
    settings.label_smoothing = Amount;
  }
};

namespace reasons {
inline constexpr reason label_smoothing_must_be_from_0_to_1{"the amount of label_smoothing must be at least 0 and at most 1"};
}  // namespace reasons

}  // namespace strata
