// Dense layers: one product forward, two backward.
#pragma once
#include <strata/layers/dense.hpp>
#include <strata/xla/emitter/emission.hpp>

namespace strata::stablehlo {

namespace detail {
tensor dense_forward(operation_call& c);
void dense_backward(operation_call& c);
}  // namespace detail

/// x: (rows, K); kernel: (K, units); bias: (units), if there is one.
template <dense_settings S>
struct emission<affine<S>> {
  static tensor forward(operation_call& c) { return detail::dense_forward(c); }
  static void backward(operation_call& c) { detail::dense_backward(c); }
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/dense.ipp>
#endif
