// Definitions of program.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION extents extents_of(const shape& s) {
  extents out;
  for (int i = 0; i < s.rank(); ++i) out.push_back(s[i]);
  return out;
}
STRATA_FUNCTION extents program_emission::extents_of(int node) const {
  extents out = detail::extents_of(program.nodes[std::size_t(node)].out);
  out.insert(out.begin(), options.rows);
  return out;
}

STRATA_FUNCTION program_emission::program_emission(const program_code& code, const module_options& how, int replicas)
    : program(code),
      options(how),
      step{.in = &in,
           .number = program.number,
           .mixed_bf16 = program.mixed_bf16,
           .rows = options.rows,
           .replicas = replicas,
           .platform = options.platform},
      limits_(traced_numbers, program.number) {
  if (options.rows < 1 || options.replicas < 1)
    throw_error(
        {"a module needs at least one row and one replica, not ", options.rows, " rows and ", options.replicas, " replicas"});
  if (options.steps < 1 || (options.steps > 1 && options.keeps_gradient))
    throw_error({"a module of ", options.steps, " steps", options.keeps_gradient ? ", which keeps the gradient" : ""});
  truths_.resize(program.outputs.size()), weights_.resize(program.outputs.size());
}

STRATA_FUNCTION tensor program_emission::add_argument(argument what) {
  given_.push_back(in.argument(what.type));
  arguments_.push_back(std::move(what));
  return given_.back();
}
STRATA_FUNCTION void program_emission::add_result(argument what, tensor value) {
  what.type = value.type();
  results_.push_back(std::move(what));
  returned_.push_back(value);
}

STRATA_FUNCTION void program_emission::add_parameters_and_inputs() {
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    parameters.push_back(add_argument(
        {.what = role::parameter, .index = int(s), .type = {program.number, detail::extents_of(program.slots[s].what.extents)}}));
  values_.resize(program.nodes.size());
  for (int k = 0; k < program.ends.input_count; ++k) {
    const int node = program.ends.inputs[k];
    values_[std::size_t(node)] = add_argument({.what = role::input, .index = k, .type = {program.number, extents_of(node)}});
  }
  const tensor_type count{element::i32, {}};
  if (options.is_padded) {
    const tensor rows = add_argument({.what = role::row_count, .type = count});
    const tensor index = iota(in, {element::i32, {options.rows}}, 0);
    step.is_sample = compare("LT", index, rows);
  }
}

STRATA_FUNCTION void program_emission::forward(bool trains) {
  for (const tape_node& n : program.nodes)
    if (trains && !n.is_input() && n.operation->traits.only_trains && !step.random_key)
      step.random_key = add_argument({.what = role::random_key, .type = {element::ui64, {}}});
  calls_.reserve(program.nodes.size());
  for (int i = 0; i < int(program.nodes.size()); ++i) {
    const tape_node& n = program.nodes[std::size_t(i)];
    calls_.push_back({.step = step, .node = i, .out = extents_of(i)});
    operation_call& c = calls_.back();
    if (n.is_input()) continue;
    for (int k = 0; k < n.arity; ++k) c.x.push_back(values_[std::size_t(n.input[k])]);
    for (std::size_t s = 0; s < program.slots.size(); ++s)
      if (program.slots[s].node == i) c.w.push_back(parameters[s]);
    const emission_code& code = program.code[std::size_t(i)];
    if (n.operation->traits.is_view || n.operation->is_loss || (n.operation->traits.only_trains && !trains))
      c.y = reshape(c.x[0], c.out);
    else
      c.y = (trains ? code.forward : code.infer)(c);
    values_[std::size_t(i)] = c.y;
  }
}

STRATA_FUNCTION std::vector<tensor> program_emission::predictions() const {
  std::vector<tensor> out;
  for (int k = 0; k < program.ends.output_count; ++k) out.push_back(values_[std::size_t(program.ends.losses[k])]);
  return out;
}

STRATA_FUNCTION tensor program_emission::truth(int output) {
  tensor& t = truths_[std::size_t(output)];
  if (!t) {
    const bool sparse = program.outputs[std::size_t(output)].labels == label_kind::sparse;
    const tensor_type of_labels{element::i32, {options.rows}},
        of_targets{program.number, extents_of(program.ends.losses[output])};
    t = add_argument({.what = role::truth, .index = output, .type = sparse ? of_labels : of_targets});
    if (options.has_weights)
      weights_[std::size_t(output)] =
          add_argument({.what = role::sample_weight, .index = output, .type = {program.number, {options.rows}}});
  }
  return t;
}
STRATA_FUNCTION loss_call program_emission::call_of_loss(int output) {
  const output_code& o = program.outputs[std::size_t(output)];
  const int loss = program.ends.losses[output];
  const tensor read = values_[std::size_t(o.joint > 0 ? program.nodes[std::size_t(o.joint)].input[0]
                                                      : program.nodes[std::size_t(loss)].input[0])];
  loss_call c{.step = step, .x = reshape(read, extents_of(loss)), .labels = {}, .targets = {}};
  (o.labels == label_kind::sparse ? c.labels : c.targets) = truth(output);
  return c;
}
STRATA_FUNCTION tensor program_emission::weighted(int output, tensor of_samples) {
  if (const tensor w = weights_[std::size_t(output)]) of_samples = of_samples * along_first_axes(w, of_samples);
  return step.only_samples(of_samples);
}

STRATA_FUNCTION tensor program_emission::sums() {
  std::vector<tensor> all;
  const auto pair_of = [](tensor total, tensor count) {
    const tensor both[] = {reshape(total, {1, 1}), reshape(count, {1, 1})};
    return concatenate(both, 1);
  };
  const tensor count = step.sample_count();
  tensor total;
  for (int k = 0; k < int(program.outputs.size()); ++k) {
    const tensor loss = sum(weighted(k, program.outputs[std::size_t(k)].loss.value(call_of_loss(k))));
    total = total ? total + loss : loss;
    all.push_back(pair_of(loss, count));
  }
  if (program.outputs.size() > 1) all.insert(all.begin(), pair_of(total, count));
  const std::vector<tensor> predicted = predictions();
  for (int k = 0; k < int(program.outputs.size()); ++k) {
    metric_call c{.step = step, .predictions = predicted[std::size_t(k)], .labels = {}, .targets = {}};
    (program.outputs[std::size_t(k)].labels == label_kind::sparse ? c.labels : c.targets) = truth(k);
    for (const auto metric : program.outputs[std::size_t(k)].metrics) all.push_back(metric(c));
  }
  const bool is_double = std::ranges::any_of(all, [](tensor t) { return t.type().of == element::f64; });
  for (tensor& t : all) t = convert(t, is_double ? element::f64 : program.number);
  return concatenate(all, 0);
}

STRATA_FUNCTION tensor program_emission::with_penalties(tensor sums) {
  if (!program.has_regularizers) return sums;
  tensor penalty;
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    const auto [l1, l2] = program.slots[s].what.regularizer;
    if (!this->trains(s)) continue;
    const tensor w = parameters[s];
    for (const tensor part : {l1 == 0 ? tensor() : sum(unary("abs", w)) * l1, l2 == 0 ? tensor() : sum(w * w) * l2})
      if (part) penalty = penalty ? penalty + part : part;
  }
  if (!penalty) return sums;
  const tensor count = slice(sums, {0, 1}, {1, 2});
  penalty = convert(penalty, sums.type().of);
  return sums + pad(reshape(penalty, {1, 1}) * count, {0, 0}, {sums.extent(0) - 1, 1}, {0, 0});
}

STRATA_FUNCTION std::vector<tensor> program_emission::gradients() {
  std::vector<tensor> of_parameters(program.slots.size()), of_nodes(program.nodes.size());
  std::vector<bool> trains(program.nodes.size());
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (this->trains(s)) trains[std::size_t(program.slots[s].node)] = true;
  for (std::size_t i = 0; i < program.nodes.size(); ++i)
    for (int k = 0; k < program.nodes[i].arity; ++k) trains[i] = trains[i] || trains[std::size_t(program.nodes[i].input[k])];
  const auto add = [&](int node, tensor gradient) {
    tensor& sum = of_nodes[std::size_t(node)];
    sum = sum ? sum + gradient : gradient;
  };
  for (int k = 0; k < int(program.outputs.size()); ++k) {
    const output_code& o = program.outputs[std::size_t(k)];
    const int from = program.nodes[std::size_t(o.joint > 0 ? o.joint : program.ends.losses[k])].input[0];
    if (trains[std::size_t(from)]) add(from, reshape(weighted(k, o.loss.gradient(call_of_loss(k))), extents_of(from)));
  }
  for (int i = int(program.nodes.size()) - 1; i > 0; --i) {
    const tape_node& n = program.nodes[std::size_t(i)];
    operation_call& c = calls_[std::size_t(i)];
    c.dy = of_nodes[std::size_t(i)];
    if (!c.dy || !trains[std::size_t(i)] || n.is_input()) continue;
    if (n.operation->traits.is_view) {
      add(n.input[0], reshape(c.dy, c.x[0].extents()));
      continue;
    }
    c.dx.resize(c.x.size()), c.dw.resize(c.w.size());
    for (int k = 0; k < n.arity; ++k) c.wants_dx.push_back(trains[std::size_t(n.input[k])]);
    std::vector<std::size_t> owned;
    for (std::size_t s = 0; s < program.slots.size(); ++s)
      if (program.slots[s].node == i) owned.push_back(s), c.wants_dw.push_back(this->trains(s));
    const auto backward = program.code[std::size_t(i)].backward;
    if (!backward) throw_error({"the emission of operation ", n.operation->name, " has no backward"});
    backward(c);
    const auto refuse = [&](const char* what, std::size_t k) {
      throw_error({"the emission of operation ", n.operation->name, " computes no gradient of ", what, ' ', k});
    };
    for (std::size_t k = 0; k < c.x.size(); ++k)
      if (c.wants_dx[k]) c.dx[k] ? add(n.input[k], c.dx[k]) : refuse("input", k);
    for (std::size_t k = 0; k < owned.size(); ++k)
      if (c.wants_dw[k]) c.dw[k] ? void(of_parameters[owned[k]] = c.dw[k]) : refuse("parameter", k);
  }
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (this->trains(s) && !of_parameters[s]) of_parameters[s] = filled(0, parameters[s]);
  return of_parameters;
}

STRATA_FUNCTION std::vector<tensor> program_emission::new_state() const {
  std::vector<tensor> out = parameters;
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    const operation_call& c = calls_[std::size_t(program.slots[s].node)];
    const auto k = std::size_t(program.slots[s].index);
    if (k < c.new_state.size() && c.new_state[k]) out[s] = c.new_state[k];
  }
  return out;
}

STRATA_FUNCTION module_text program_emission::finish() {
  std::vector<int> donated;
  for (argument& a : arguments_) {
    for (std::size_t r = 0; r < results_.size() && (a.what == role::parameter || a.what == role::slot); ++r)
      if (results_[r].what == a.what && results_[r].index == a.index && results_[r].arena == a.arena) a.donated_to = int(r);
    donated.push_back(a.donated_to);
  }
  const std::string head = text_of({"mhlo.num_replicas = ", options.replicas, " : i32, mhlo.num_partitions = 1 : i32"});
  module_text all{.text = {}, .arguments = arguments_, .results = results_, .replicas = options.replicas};
  if (options.steps == 1) {
    all.text = in.text(returned_, donated, head);
    return all;
  }
  all.text = in.function("private @one_step", returned_, std::vector<int>(donated.size(), -1));
  return in_a_loop(all, options.steps, head);
}

}  // namespace strata::stablehlo::detail
