// The modules of a program: its training step, its evaluation and its predictions as text of StableHLO.
#pragma once
#include <array>
#include <strata/program/compiled.hpp>
#include <strata/xla/emitter/activations.hpp>
#include <strata/xla/emitter/convolution.hpp>
#include <strata/xla/emitter/dense.hpp>
#include <strata/xla/emitter/dropout.hpp>
#include <strata/xla/emitter/losses.hpp>
#include <strata/xla/emitter/metrics.hpp>
#include <strata/xla/emitter/normalization.hpp>
#include <strata/xla/emitter/pooling.hpp>
#include <strata/xla/emitter/program.hpp>
#include <strata/xla/emitter/reshaping.hpp>
#include <strata/xla/emitter/update.hpp>
#include <strata/xla/module.hpp>

namespace strata {

namespace core {
// The parts of the diagnostic about an operation that has no emission. Never defined.
template <class Where, class Who, class What>
struct missing_emission;
}  // namespace core

namespace stablehlo {

namespace detail {

/// The first node that cannot be emitted; -1: there is none.
template <class Program>
inline constexpr int first_without_emission = []<class... Node>(type_list<Node...>) {
  constexpr bool has[] = {has_emission<typename Node::operation>...};
  for (int i = 0; i < int(sizeof...(Node)); ++i)
    if (!has[i]) return i;
  return -1;
}(node_types_of<typename Program::items>{});

}  // namespace detail

/// The diagnostic about a program that has an operation without emission; no_complaint if there is none.
template <class Program, int Node = detail::first_without_emission<Program>>
struct emission_verdict {
  using failed = detail::at_t<Node, node_types_of<typename Program::items>>;
  using type = missing_emission<at_node<Node>, by_layer<typename failed::layer>, for_operation<typename failed::operation>>;
};
template <class Program>
struct emission_verdict<Program, -1> {
  using type = detail::no_complaint;
};

namespace detail {

/// The node of the operation that is computed together with the loss of an output, if its type requires that; else 0.
template <class Items, int Loss>
constexpr int joint_of() {
  constexpr int before = operation_before_loss(tape_of<Items>, Loss);
  if constexpr (before > 0)
    if constexpr (complete<loss_emission<fused<typename detail::at_t<before, node_types_of<Items>>::operation,
                                               typename detail::at_t<Loss, node_types_of<Items>>::operation>>>)
      return before;
  return 0;
}

template <class Metrics>
inline constexpr std::array<tensor (*)(const metric_call&), 0> metrics_of{};
template <class... M>
inline constexpr std::array metrics_of<type_list<M...>>{&metric_emission<M>::sums...};
template <>
inline constexpr std::array<tensor (*)(const metric_call&), 0> metrics_of<type_list<>>{};

template <class Program, class Output, int Loss>
constexpr output_code output_code_of() {
  using items = typename Program::items;
  constexpr int joint = joint_of<items, Loss>();
  output_code o;
  o.joint = joint;
  o.labels = Output::loss::labels;
  o.metrics = metrics_of<typename Output::metrics>;
  if constexpr (joint > 0)
    o.loss = loss_code_of<fused<typename detail::at_t<joint, node_types_of<items>>::operation, typename Output::loss>>();
  else
    o.loss = loss_code_of<typename Output::loss>();
  return o;
}

/// All of a program that depends on its types.
template <class Program>
struct code_of_program {
  using items = typename Program::items;
  static_assert(detail::diagnosed<typename emission_verdict<Program>::type>[0]);
  static constexpr tape_ends ends = ends_of(tape_of<items>);

  static constexpr auto operations = []<class... Node>(type_list<Node...>) {
    return std::array{code_of<typename Node::operation>()...};
  }(node_types_of<items>{});

  static constexpr auto outputs = []<class... Output, int... K>(type_list<Output...>, std::integer_sequence<int, K...>) {
    return std::array{output_code_of<Program, Output, ends.losses[K]>()...};
  }(typename Program::outputs{}, std::make_integer_sequence<int, ends.output_count>{});

  static program_code code() {
    const auto& layout = layout_of<items>;
    return {.nodes = tape_of<items>.nodes,
            .slots = std::span(layout.slots).first(std::size_t(layout.count)),
            .ends = ends,
            .code = operations,
            .outputs = outputs,
            .number = element_of<typename Program::value_type>,
            .mixed_bf16 = std::is_same_v<typename Program::precision, precision::mixed_bf16>,
            .has_regularizers = layout.has_regularizers()};
  }
};

/// The state of a training module between its gradients and its end.
struct training_parts {
  tensor sums, batch_count;
  std::vector<tensor> gradients;  // of each slot of the layout; means over the samples of all replicas
};
/// Arguments, forward, backward and the sums over all replicas.
training_parts emit_gradients(program_emission& m);
/// Adds the slots of the trained parameters as arguments. slot_types: for each slot of the layout the types of its slots.
std::vector<updated_parameter> add_slots(program_emission& m, const training_parts& parts,
                                         const std::vector<std::vector<tensor_type>>& slot_types);
module_text finish_training(program_emission& m, const training_parts& parts, std::span<const updated_parameter> updated);
module_text emit_evaluation(const program_code& program, const module_options& options);
module_text emit_prediction(const program_code& program, const module_options& options);
}  // namespace detail

/// The values of a training module's argument `step_scalars`, for step `step`, counted from 0, and its learning rate.
template <class Program>
std::vector<typename Program::value_type> step_scalars(const typename Program::optimizer& optimizer, long step, double rate) {
  return step_scalars_of<typename Program::value_type>(optimizer, step, rate);
}

/// A training step: forward, backward, the sums over all replicas, the update, and the sums of loss and metrics.
template <class Program>
module_text training_module(const typename Program::optimizer& optimizer, const module_options& options) {
  const detail::program_code program = detail::code_of_program<Program>::code();
  detail::program_emission m(program, options, options.replicas);
  const detail::training_parts parts = detail::emit_gradients(m);
  std::vector<std::vector<tensor_type>> slot_types(program.slots.size());
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    for (int k = 0; program.slots[s].what.trainable && k < optimizer.slots(); ++k)
      slot_types[s].push_back(slot_type(optimizer, k, m.parameters[s].type()));
  std::vector<updated_parameter> updated = detail::add_slots(m, parts, slot_types);
  tensor scalars;
  if (const auto n = std::int64_t(step_scalars<Program>(optimizer, 0, 0.1).size()); n > 0)
    scalars = m.add_argument({.what = role::step_scalars, .type = {program.number, {n}}});
  update(optimizer, scalars, updated);
  return detail::finish_training(m, parts, updated);
}

/// Loss and metrics of a batch.
template <class Program>
module_text evaluation_module(const module_options& options) {
  return detail::emit_evaluation(detail::code_of_program<Program>::code(), options);
}

/// The outputs of the network for a batch.
template <class Program>
module_text prediction_module(const module_options& options) {
  return detail::emit_prediction(detail::code_of_program<Program>::code(), options);
}

}  // namespace stablehlo
}  // namespace strata

#if STRATA_DEFINES
#include <strata/xla/emitter/emitter.ipp>
#endif
