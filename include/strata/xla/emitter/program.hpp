// The walk over the tape of a program: forward, backward, and the sums of losses and metrics. It is compiled once, for all
// networks.
#pragma once
#include <strata/network/layout.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/emitter/emission.hpp>
#include <strata/xla/emitter/loop.hpp>
#include <strata/xla/emitter/traced.hpp>

namespace strata::stablehlo::detail {

/// A loss of a program, and the metrics of the same output.
struct output_code {
  loss_code loss;  // of what the joint operation reads, if there is one; else of the predictions
  int joint = 0;   // the node of that operation; 0: none
  label_kind labels{};
  std::span<tensor (*const)(const metric_call&)> metrics;
};

/// A program with its types erased.
struct program_code {
  std::span<const tape_node> nodes;
  std::span<const parameter_slot> slots;
  tape_ends ends;
  std::span<const emission_code> code;  // of each node
  std::span<const output_code> outputs;
  element number;
  bool mixed_bf16, has_regularizers;
};

/// A module of a program under construction.
class program_emission {
 public:
  program_emission(const program_code& code, const module_options& how, int replicas);
  program_emission(const program_emission&) = delete;

  tensor add_argument(argument what);
  void add_result(argument what, tensor value);
  /// Arguments for the parameters, and for each input.
  void add_parameters_and_inputs();
  void forward(bool trains);
  /// Sums of the losses and metrics, over this replica: (pairs, 2) as metric_sums, without the penalties. All are f64 if one of
  /// them is.
  tensor sums();
  /// The gradient for each slot of the layout, over this replica; empty for one that is not trained.
  std::vector<tensor> gradients();
  /// The state for each slot of the layout, after a step, before the update, as operations have changed it.
  std::vector<tensor> new_state() const;
  /// Adds what the regularizers add to the loss of all samples.
  tensor with_penalties(tensor sums);

  const program_code& program;
  const module_options& options;
  graph in;
  step_facts step;
  std::vector<tensor> parameters;  // of each slot of the layout
  bool trains(std::size_t slot) const { return program.slots[slot].what.trainable && !options.is_frozen(slot); }
  std::vector<tensor> predictions() const;

  /// The module. Donates each parameter and slot to the result of the same role. Has several steps if the options request them.
  module_text finish();

 private:
  tensor truth(int output);
  loss_call call_of_loss(int output);
  extents extents_of(int node) const;
  /// Multiplies the loss of each sample by its weight, and by zero if a row is no sample.
  tensor weighted(int output, tensor of_samples);

  const set_for_now<element> limits_;  // of the number that is traced
  std::vector<argument> arguments_, results_;
  std::vector<tensor> given_, returned_;
  std::vector<tensor> values_;            // of each node
  std::vector<operation_call> calls_;     // of each node
  std::vector<tensor> truths_, weights_;  // of each output
};

}  // namespace strata::stablehlo::detail

#if STRATA_DEFINES
#include <strata/xla/emitter/program.ipp>
#endif
