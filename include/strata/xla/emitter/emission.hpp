// The emission of an operation in StableHLO: a specialisation of emission<Operation>.
#pragma once
#include <strata/concepts/operation.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/network/tape.hpp>
#include <strata/xla/emitter/graph.hpp>
#include <type_traits>

namespace strata::stablehlo {

/// The values that the operations of a module share.
struct step_facts {
  graph* in = nullptr;
  element number = element::f32;  // of weights and activations
  bool mixed_bf16 = false;        // operands of products are rounded to bfloat16
  int rows = 0, replicas = 1;
  platform_traits platform{};
  tensor batch_count{};  // the samples of all replicas, a scalar of `number`
  tensor is_sample{};    // (rows) of i1; none if every row is a sample
  tensor random_key{};   // ui64

  /// `rows_of` with zeros in the rows that are no samples.
  tensor only_samples(tensor rows_of) const;
  /// The addend of this replica in a sum over all replicas: zero if it has no sample.
  tensor if_any_sample(tensor of_replica) const;
  /// The number of samples of this replica, a scalar of `number`.
  tensor sample_count() const;
  /// The sums over all replicas.
  std::vector<tensor> over_replicas(std::span<const tensor> sums) const { return all_reduce(sums, replicas); }
  tensor over_replicas(tensor sum) const { return all_reduce(std::span<const tensor>(&sum, 1), replicas)[0]; }
};

/// One operation of a network in a module. Tensors have the rows of a replica as their first axis.
struct operation_call {
  const step_facts& step;
  int node = 0;                  // its number on the tape: a stream of random numbers
  std::vector<tensor> x{}, w{};  // inputs and parameters
  extents out{};                 // of the result

  // Backward.
  tensor y{}, dy{};
  std::vector<tensor> dx{}, dw{};  // to be set: gradients of inputs and parameters, sums over the rows of this replica
  std::vector<bool> wants_dx{}, wants_dw{};

  std::vector<tensor> saved{};      // from forward for backward
  std::vector<tensor> new_state{};  // of the parameters, where a step changes state; set by forward in training

  graph& in() const { return *step.in; }
  /// Sets dx[0], the gradient of the first input.
  void set_dx(tensor value) { dx[0] = value; }
  /// An operand of a product, in the precision of the program, and how the product is computed.
  tensor factor(tensor t) const { return step.mixed_bf16 ? convert(t, element::bf16) : t; }
  product_precision precision() const {
    return step.mixed_bf16 ? product_precision::of_platform : product_precision::as_operands;
  }
};

/// Members of a specialisation (all static):
///   `tensor forward(operation_call&)`
///   `void backward(operation_call&)`   not where the operation has neither parameters nor a use in front of one
///   `tensor infer(operation_call&)`    where inference differs from forward
/// Operations that are views need none of it; those that are the identity in inference do not need infer. There is one
/// specialisation for an operation in all shapes: the types of tensors have them.
template <class Operation>
struct emission;

/// The loss of the samples of a replica.
struct loss_call {
  const step_facts& step;
  tensor x;                // predictions, or what the joint operation reads: (rows, shape...)
  tensor labels, targets;  // (rows) of i32, or as x

  graph& in() const { return *step.in; }
};
/// Members of a specialisation for a loss, or for fused<Activation, Loss> where the loss is computed from what the activation
/// reads:
///   `tensor value(const loss_call&)`     (rows): the loss of each sample
///   `tensor gradient(const loss_call&)`  its derivative by x
template <class Loss>
struct loss_emission;

/// A metric over the samples of a replica.
struct metric_call {
  const step_facts& step;
  tensor predictions;      // (rows, shape...)
  tensor labels, targets;  // as in loss_call

  graph& in() const { return *step.in; }
};
/// `tensor sums(const metric_call&)`: (pairs, 2), what the samples add to the sums of the metric.
template <class Metric>
struct metric_emission;

namespace detail {
template <class E>
concept complete = requires { sizeof(E); };

/// An emission with its type erased, so that the walk over the tape is compiled once.
struct emission_code {
  tensor (*forward)(operation_call&) = nullptr;
  tensor (*infer)(operation_call&) = nullptr;
  void (*backward)(operation_call&) = nullptr;
};
template <class Operation>
constexpr emission_code code_of() {
  emission_code c;
  if constexpr (complete<emission<Operation>>) {
    c.forward = c.infer = &emission<Operation>::forward;
    if constexpr (requires { &emission<Operation>::infer; }) c.infer = &emission<Operation>::infer;
    if constexpr (requires { &emission<Operation>::backward; }) c.backward = &emission<Operation>::backward;
  }
  return c;
}

/// True if an operation can be emitted.
template <class Operation>
inline constexpr bool has_emission =
    complete<emission<Operation>> || info_of<Operation>.traits.is_view || info_of<Operation>.is_loss;
template <int... Extents>
inline constexpr bool has_emission<input<Extents...>> = true;

struct loss_code {
  tensor (*value)(const loss_call&) = nullptr;
  tensor (*gradient)(const loss_call&) = nullptr;
};
template <class Loss>
constexpr loss_code loss_code_of() {
  if constexpr (complete<loss_emission<Loss>>)
    return {&loss_emission<Loss>::value, &loss_emission<Loss>::gradient};
  else
    return {};
}
}  // namespace detail

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/emission.ipp>
#endif
