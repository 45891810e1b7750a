// batch_norm<>: batch normalization. It needs statistics of the whole batch, so it opens a new segment.
#pragma once
#include <strata/layers/normalization_options.hpp>

namespace strata {

namespace reasons {
inline constexpr reason batch_norm_momentum_must_be_below_1{"the momentum of batch_norm must be at least 0 and below 1"};
}  // namespace reasons

namespace core {
struct batch_norm_settings {
  decimal momentum = decimal(99, -2), epsilon = decimal(1, -3);
  bool center = true, scale = true;
  bool frozen = false;  // it uses the moving statistics, in training too

  constexpr batch_norm_settings when_frozen() const {
    batch_norm_settings s = *this;
    s.frozen = true;
    return s;
  }
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta per channel. mean and (biased) variance are over all samples of the
/// global batch and all positions; if the layer is frozen, they are the moving ones.  in: (..., C)  out: (..., C)  gamma, beta,
/// moving_mean, moving_variance: (C)
template <batch_norm_settings S>
struct batch_normalization {
  static constexpr auto name = "batch_normalization";
  static constexpr operation_traits traits{.whole_batch = !S.frozen, .folds = true, .makes = value_range::real};
  using when_frozen = batch_normalization<S.when_frozen()>;

  static constexpr expected_shape output_shape(shape in) {
    if (!detail::is_positive_float(S.epsilon.value())) return reasons::normalization_epsilon_must_be_positive_and_finite_as_float;
    if (S.momentum.value() < 0 || S.momentum.value() >= 1) return reasons::batch_norm_momentum_must_be_below_1;
    if (in.rank() < 1) return reasons::normalization_takes_at_least_one_extent;
    return in;
  }
  static constexpr auto parameters(shape in) {
    const shape channels{in.last()};
    auto owned = detail::gamma_and_beta<S, 2>(channels);
    owned[owned.size() - 2] = {"moving_mean", channels, &info_of_initializer<zeros>, false};
    owned[owned.size() - 1] = {"moving_variance", channels, &info_of_initializer<ones>, false};
    return owned;
  }
};
}  // namespace core

/// Momentum of the moving statistics: moving = Value * moving + (1 - Value) * batch.
template <core::decimal Value>
struct momentum {
  static constexpr void configure(auto& settings)
    requires requires { settings.momentum; }
  {
    settings.momentum = Value;
  }
};

/// Batch normalization (Ioffe and Szegedy 2015): batch_norm<>, batch_norm<momentum<0.9_r>>. Statistics are always synchronised
/// over all threads and processes.  in: (..., C)  out: (..., C)
/// Options: momentum, epsilon, no_center, no_scale, gamma_/beta_initializer, gamma_/beta_regularizer.
/// https://keras.io/api/layers/normalization_layers/batch_normalization
template <class... Options>
struct batch_norm /* write batch_norm<> */ : core::layer_options<core::batch_norm_settings, Options...> {
  static constexpr auto name = "batch_normalization", class_name = "BatchNormalization";
  using operations = core::type_list<core::batch_normalization<batch_norm::configured(core::batch_norm_settings{})>>;
};

}  // namespace strata
