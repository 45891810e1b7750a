// Activations: those of one element are traced, softmax is written here.
#pragma once
#include <strata/reference/activation_functions.hpp>
#include <strata/xla/emitter/emission.hpp>
#include <strata/xla/emitter/traced.hpp>

namespace strata::stablehlo {

template <elementwise_activation A>
struct emission<A> {
  using function = activation_function<A>;

  static tensor forward(operation_call& c) {
    return trace(c.x[0], [&] { return function::value(traced(c.x[0])); });
  }
  static void backward(operation_call& c) {
    // Each way through the formula has its own product, so that a slope of 0 or 1, as that of relu, selects 0 or dy. XLA does
    // not find that itself, because 0 times infinity is not 0.
    c.set_dx(trace(c.dy, [&] {
      const traced slope = function::derivative(traced(c.x[0]), traced(c.y));
      return slope.is_constant() && slope.constant() == 0 ? slope : traced(c.dy) * slope;
    }));
  }
};

/// Softmax over the last axis.
tensor softmax_of(tensor x);
/// shifted: x - largest; exponentials: exp(shifted); sums: their sums, without the last axis.
struct shifted_logits {
  tensor shifted, exponentials, sums;
  explicit shifted_logits(tensor x);
};

template <>
struct emission<softmax> {
  static tensor forward(operation_call& c) { return softmax_of(c.x[0]); }
  static void backward(operation_call& c);
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/activations.ipp>
#endif
