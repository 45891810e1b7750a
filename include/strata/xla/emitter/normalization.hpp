// Normalizations: over the global batch, over the last axis, with fixed moments.
#pragma once
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/layer_norm.hpp>
#include <strata/layers/normalization.hpp>
#include <strata/xla/emitter/emission.hpp>

namespace strata::stablehlo {

namespace detail {
/// gamma and beta, where an operation has them, then other parameters.
struct scale_and_shift {
  bool scale, center;
  /// gamma * z + beta
  tensor apply(const operation_call& c, tensor z) const;
  /// Sets the gradients of gamma and beta; returns that of z.
  tensor gradient(operation_call& c, tensor z) const;
};
tensor batch_norm_forward(operation_call& c, const batch_norm_settings& s);
tensor batch_norm_infer(operation_call& c, const batch_norm_settings& s);
void batch_norm_backward(operation_call& c, const batch_norm_settings& s);
tensor layer_norm_forward(operation_call& c, const layer_norm_settings& s);
void layer_norm_backward(operation_call& c, const layer_norm_settings& s);
}  // namespace detail

/// Statistics are those of the samples of all replicas. If the layer is frozen, they are the moving ones.
template <batch_norm_settings S>
struct emission<batch_normalization<S>> {
  static tensor forward(operation_call& c) {
    return S.frozen ? detail::batch_norm_infer(c, S) : detail::batch_norm_forward(c, S);
  }
  static tensor infer(operation_call& c) { return detail::batch_norm_infer(c, S); }
  static void backward(operation_call& c) { detail::batch_norm_backward(c, S); }
};

template <layer_norm_settings S>
struct emission<layer_normalization<S>> {
  static tensor forward(operation_call& c) { return detail::layer_norm_forward(c, S); }
  static void backward(operation_call& c) { detail::layer_norm_backward(c, S); }
};

template <>
struct emission<normalization> {
  static tensor forward(operation_call& c);
  static void backward(operation_call& c);
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/normalization.ipp>
#endif
