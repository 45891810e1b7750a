// Definitions of emitter.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION training_parts emit_gradients(program_emission& m) {
  m.add_parameters_and_inputs();
  const tensor_type scalar{m.program.number, {}};
  m.step.batch_count = m.options.is_padded
                           ? convert(m.add_argument({.what = role::batch_count, .type = {element::i32, {}}}), m.program.number)
                           : m.in.constant(double(m.options.rows) * m.options.replicas, scalar);
  m.forward(true);
  const tensor sums = m.sums();
  training_parts parts{.sums = {}, .batch_count = m.step.batch_count, .gradients = m.gradients()};
  // One operation for all sums over replicas.
  std::vector<tensor> all;
  for (const tensor t : parts.gradients)
    if (t) all.push_back(m.step.if_any_sample(t));
  all.push_back(sums);
  all = m.step.over_replicas(all);
  parts.sums = m.with_penalties(all.back());
  const tensor mean = m.in.constant(1, scalar) / parts.batch_count;
  std::size_t at = 0;
  for (std::size_t s = 0; s < parts.gradients.size(); ++s) {
    if (!parts.gradients[s]) continue;
    parts.gradients[s] = all[at++] * mean;
    if (m.options.keeps_gradient) m.add_result({.what = role::gradient, .index = int(s), .type = {}}, parts.gradients[s]);
  }
  return parts;
}

STRATA_FUNCTION std::vector<updated_parameter> add_slots(program_emission& m, const training_parts& parts,
                                                         const std::vector<std::vector<tensor_type>>& slot_types) {
  std::vector<updated_parameter> out;
  for (std::size_t s = 0; s < m.program.slots.size(); ++s) {
    if (!m.trains(s)) continue;
    out.push_back({.weight = m.parameters[s],
                   .gradient = parts.gradients[s],
                   .slots = {},
                   .regularizer = m.program.slots[s].what.regularizer});
    for (std::size_t k = 0; k < slot_types[s].size(); ++k)
      out.back().slots.push_back(
          m.add_argument({.what = role::slot, .index = int(s), .arena = int(k), .type = slot_types[s][k]}));
  }
  return out;
}

STRATA_FUNCTION module_text finish_training(program_emission& m, const training_parts& parts,
                                            std::span<const updated_parameter> updated) {
  const std::vector<tensor> state = m.new_state();
  std::size_t at = 0;
  for (std::size_t s = 0; s < m.program.slots.size(); ++s) {
    if (!m.program.slots[s].what.trainable) {
      m.add_result({.what = role::parameter, .index = int(s), .type = {}}, state[s]);
      continue;
    }
    if (!m.trains(s)) continue;
    const updated_parameter& p = updated[at++];
    m.add_result({.what = role::parameter, .index = int(s), .type = {}}, p.weight);
    for (std::size_t k = 0; k < p.slots.size(); ++k)
      m.add_result({.what = role::slot, .index = int(s), .arena = int(k), .type = {}}, p.slots[k]);
  }
  m.add_result({.what = role::sums, .type = {}}, parts.sums);
  return m.finish();
}

STRATA_FUNCTION module_text emit_evaluation(const program_code& program, const module_options& options) {
  module_options one = options;
  one.steps = 1;
  program_emission m(program, one, options.replicas);
  m.add_parameters_and_inputs();
  m.forward(false);
  m.add_result({.what = role::sums, .type = {}}, m.with_penalties(m.step.over_replicas(m.sums())));
  return m.finish();
}

STRATA_FUNCTION module_text emit_prediction(const program_code& program, const module_options& options) {
  module_options whole = options;
  whole.is_padded = false, whole.steps = 1;
  program_emission m(program, whole, 1);
  m.add_parameters_and_inputs();
  m.forward(false);
  const std::vector<tensor> all = m.predictions();
  for (std::size_t k = 0; k < all.size(); ++k) m.add_result({.what = role::prediction, .index = int(k), .type = {}}, all[k]);
  return m.finish();
}

}  // namespace strata::stablehlo::detail
