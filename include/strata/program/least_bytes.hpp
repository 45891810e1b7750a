// How many bytes of memory a step has to move: a bound for engines whose kernels read and write memory that no cache holds.
#pragma once
#include <strata/network/layout.hpp>
#include <strata/program/compiled.hpp>

namespace strata::core {

/// The bytes that a training step reads and writes if each kernel of the plan reads each of its operands once and writes each
/// result once, an update reads and writes weights and slots once, and forward and backward of the last group are one kernel. The
/// few sums of each leaf are not counted.
template <class Program, class Backend>
constexpr long least_bytes_of_step(long count, long leaves, long slots) {
  constexpr const auto& plan = plan_of<Program, Backend>;
  constexpr const auto& layout = layout_of_program<Program>;
  constexpr const end_sizes& ends = ends_of_program<Program>;
  long weights[plan.group_count] = {}, trained[plan.group_count] = {};
  for (int i = 0; i < layout.count; ++i) {
    const auto& slot = layout.slots[i];
    const int g = plan.group_of[slot.node];
    weights[g] += slot.what.extents.size();
    if (slot.what.trainable) trained[g] += slot.what.extents.size();
  }
  long elements = 0;
  for (int k = 0; k < ends.input_count; ++k) elements += count * ends.inputs[k];  // the copy of the batch
  for (int g = 0; g < plan.group_count; ++g) {
    const kernel_group& it = plan.groups[g];
    const bool is_last = g + 1 == plan.group_count;
    long inputs = 0, gradients = 0;
    for (int k = 0; k < it.arity; ++k) {
      const long size = it.input[k] < 0 ? ends.inputs[-1 - it.input[k]] : plan.groups[it.input[k]].stored_size();
      inputs += size;
      if (it.wants_dx[k]) gradients += size;
    }
    elements += count * (inputs + it.stored_size() + it.kernel.saved) + weights[g];
    if (!it.trains) continue;
    elements += count * gradients + leaves * trained[g];
    if (is_last) continue;  // it has read the rest forward
    const bool reads_input = trained[g] > 0 || it.kernel.reads_input;
    elements += count * ((reads_input ? inputs : 0) + (it.kernel.reads_output ? it.stored_size() : 0) + it.kernel.saved);
    if (it.number_of_output < 0) elements += count * it.stored_size();  // the gradient of its result
    if (gradients > 0) elements += weights[g];
  }
  elements += layout.trainable * (leaves + 2 + 2 * slots);
  return elements * long(sizeof(typename Program::value_type));
}

}  // namespace strata::core
