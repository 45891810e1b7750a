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
    c.set_dx(c.dy * trace(c.dy, [&] { return function::derivative(traced(c.x[0]), traced(c.y)); }));
  }
};

/// Softmax over the last axis.
tensor softmax_of(tensor x);
/// Without the last axis: the sum of exp(x - largest), and x - largest.
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
