// Definitions of print_plan.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string backward_of_group(const kernel_group& g) {
  if (!g.trains) return "none";
  std::string weights, stored, added;
  for (int k = 0; k < g.parameter_count; ++k)
    if (g.trainable[k]) weights = "dw";
  for (int k = 0; k < g.arity; ++k) {
    if (!g.wants_dx[k]) continue;
    std::string& of = g.adds_dx[k] ? added : stored;
    of += detail::text_of({of.empty() ? "%" : ", %", g.input[k]});
  }
  std::string out = weights;
  if (!stored.empty()) out += detail::text_of({out.empty() ? "" : ", ", detail::text_of({"stores dx of ", stored})});
  if (!added.empty()) out += detail::text_of({out.empty() ? "" : ", ", detail::text_of({"adds to dx of ", added})});
  return out;
}

STRATA_FUNCTION std::string counted(std::size_t n, std::string_view what) {
  return std::to_string(n).append(" ").append(what).append(n == 1 ? "" : "s");
}

STRATA_FUNCTION std::string plan_text(std::string_view where, int element_size, std::span<const tape_node> nodes,
                                      const layout_info& layout, const plan_info& plan) {
  const std::vector<std::string> names = layer_names(nodes), parameters = parameter_names(nodes, layout.slots);
  const auto bytes = [&](long elements) { return readable_memory(double(elements) * element_size); };
  const bool several = plan.first_of_segment.size() > 2;
  const auto inputs_of_network =
      std::size_t(std::count_if(nodes.begin(), nodes.end(), [](const tape_node& n) { return n.is_input(); }));
  const auto read_by = [&](int group) {
    if (group >= 0) return detail::text_of({'%', group});
    return inputs_of_network == 1 ? "batch" : detail::text_of({"input ", -1 - group});
  };
  const auto placed = [&](int size, workspace_location at, bool is_narrow = false) {
    if (at.offset < 0) return std::string();
    return formatted("%d%s @ %d%s", size, is_narrow ? "n" : "", at.offset, at.passes && several ? "*" : "");
  };
  const auto derived_size = [&](std::size_t g) {
    return (g + 1 < plan.groups.size() ? plan.groups[g + 1].derived : plan.derived) - plan.groups[g].derived;
  };

  std::string out =
      detail::text_of({plan.why == purpose::inference ? "plan of inference on " : "plan on ", where, ": ",
                       counted(nodes.size() - inputs_of_network, "operation"), " in ", counted(plan.groups.size(), "group"),
                       " and ", counted(plan.first_of_segment.size() - 1, "segment"), ", numbers of ", element_size, " bytes\n"});
  out += detail::text_of({"  parameters  ", grouped(layout.trainable), " trained, ", grouped(layout.state), " state; arena ",
                          bytes(layout.arena), ", gradient of a leaf ", bytes(layout.trainable_arena), "\n"});
  if (plan.derived > 0) out += detail::text_of({"  derived layouts of weights  ", bytes(plan.derived), "\n"});
  const std::string reuse = detail::text_of({" (", bytes(plan.unshared_workspace), " without reuse)"});
  const bool whole = plan.computes_whole_leaves;
  const std::string_view for_all = ", for all samples that a device has";
  out += several
             ? detail::text_of({"  workspace   ", bytes(plan.workspace),
                                whole ? " per sample, and " : " per sample of a leaf, and ", bytes(plan.passing), " per sample",
                                whole ? "" : " of a micro-batch", ", with a *", reuse, whole ? for_all : "", "\n"})
             : detail::text_of({"  workspace   ", bytes(plan.passing), " per sample", reuse,
                                whole ? for_all : ", for the samples of a micro-batch",
                                plan.most_samples > 0 ? detail::text_of({", at most ", plan.most_samples}) : "", "\n"});
  if (std::ranges::any_of(plan.groups, &kernel_group::has_narrow_output))
    out += "  narrow      arrays with an n: rounded numbers, of which two take up the memory of one\n";
  if (plan.scratch + plan.scratch_per_sample > 0)
    out += detail::text_of({"  scratch     ", bytes(plan.scratch), " and ", bytes(plan.scratch_per_sample), " per sample\n"});
  if (!plan.first_of_piece.empty()) {
    out += "  pieces      computed again before their backward pass:";
    for (std::size_t c = 0; c + 2 < plan.first_of_piece.size(); ++c) {
      const int first = plan.first_of_piece[c], last = plan.first_of_piece[c + 1] - 1;
      out += detail::text_of({c > 0 ? ", %" : " %", first, last > first ? detail::text_of({" to %", last}) : ""});
    }
    out += '\n';
  }
  if (plan.statistics > 0) out += detail::text_of({"  statistics  ", plan.statistics, " doubles per leaf\n"});

  // Places are printed as element @ offset: per sample in the workspace, absolute in the arena of parameters.
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> owned;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const parameter_slot& s = layout.slots[i];
    owned.push_back(
        detail::text_of({parameters[i], ' ', shape_text(s.what.extents), " @ ", s.offset, s.what.trainable ? "" : ", state"}));
  }
  std::size_t segment = 0;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const kernel_group& it = plan.groups[g];
    if (segment + 1 < plan.first_of_segment.size() && plan.first_of_segment[segment] == int(g)) {
      if (several) rows.push_back({detail::text_of({"segment ", segment})});
      if (segment++ == 0)
        rows.push_back(
            {"", "operations", "of", "output", "layers", "output @", "saved @", "gradient @", "derived @", "backward"});
    }
    std::string inputs;
    for (int k = 0; k < it.arity; ++k) inputs += detail::text_of({k > 0 ? ", " : "", read_by(it.input[k])});
    rows.push_back({detail::text_of({'%', g}),
                    detail::text_of({operations_of_group(nodes, it), it.kernel.exists ? "" : " (no kernel)"}), inputs,
                    shape_text(nodes[std::size_t(it.first + it.count - 1)].out), layers_of_group(nodes, names, it),
                    placed(it.stored_size(), it.output, it.has_narrow_output), placed(it.kernel.saved, it.saved),
                    placed(it.stored_size(), it.gradient, it.has_narrow_output),
                    derived_size(g) > 0 ? formatted("%ld @ %ld", derived_size(g), it.derived) : "",
                    plan.why == purpose::training ? backward_of_group(it) : ""});
  }
  out += aligned(rows);
  if (!owned.empty()) out += "parameters\n";
  for (const std::string& line : owned) out += detail::text_of({"  ", line, '\n'});
  return out;
}

}  // namespace strata::detail
