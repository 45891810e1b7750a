// The plan of a program as text: what is fused, who reads what, where it lies, what backward does.
#pragma once
#include <iostream>
#include <strata/network/summary.hpp>
#include <strata/program/compiled.hpp>

namespace strata {

namespace detail {

/// The numbers of a plan without its size.
struct plan_facts {
  purpose why;
  std::span<const group> groups;
  std::span<const int> first_of_segment;
  int workspace, passing, unshared_workspace, statistics, scratch, scratch_per_sample;
  long derived;
};

struct layout_facts {
  std::span<const parameter_slot> slots;
  long arena, trainable_arena, trainable, state;
};

/// Columns as wide as they need to be, two blanks apart, without those that are empty below their header. A row of one cell is a
/// line of its own. Cells hold ASCII.
inline std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> used;
  bool header = true;
  for (const auto& cells : rows) {
    if (cells.size() == 1) continue;
    widths.resize(cells.size());
    used.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
      used[i] = used[i] || (!header && !cells[i].empty());
    }
    header = false;
  }
  std::string out;
  for (const auto& cells : rows) {
    std::string line = cells.size() == 1 ? cells[0] : "";
    for (std::size_t i = 0; cells.size() > 1 && i < cells.size(); ++i)
      if (used[i]) line += cells[i] + std::string(widths[i] - cells[i].size() + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

inline std::string shape_text(const shape& s) {
  std::string out = "(";
  for (int i = 0; i < s.rank(); ++i) out += (i > 0 ? ", " : "") + std::to_string(s[i]);
  return out + (s.rank() == 1 ? ",)" : ")");
}

/// "conv2d, max_pooling2d": the layers behind a group. The loss, the last node, is none.
inline std::string layers_of_group(std::span<const node> nodes, const std::vector<std::string>& names, const group& g) {
  std::string out;
  for (int i = g.first; i < std::min(g.first + g.count, int(nodes.size()) - 1); ++i) {
    const int layer = nodes[std::size_t(i)].layer_number;
    if (i == g.first || layer != nodes[std::size_t(i) - 1].layer_number)
      out += (i > g.first ? ", " : "") + names[std::size_t(layer)];
  }
  return out;
}

/// "dw, stores dx of %1, adds to dx of %0", or "none": nothing up to here has parameters.
inline std::string backward_of_group(const group& g) {
  if (!g.trains) return "none";
  std::string weights, stored, added;
  for (int k = 0; k < g.parameter_count; ++k)
    if (g.trainable[k]) weights = "dw";
  for (int k = 0; k < g.arity; ++k) {
    if (!g.wants_dx[k]) continue;
    std::string& of = g.adds_dx[k] ? added : stored;
    of += (of.empty() ? "%" : ", %") + std::to_string(g.input[k]);
  }
  std::string out = weights;
  if (!stored.empty()) out += (out.empty() ? "" : ", ") + ("stores dx of " + stored);
  if (!added.empty()) out += (out.empty() ? "" : ", ") + ("adds to dx of " + added);
  return out;
}

inline std::string counted(std::size_t n, std::string_view what) { return std::to_string(n).append(" ").append(what).append(n == 1 ? "" : "s"); }

inline std::string plan_text(std::string_view backend, int element_size, std::span<const node> nodes, const layout_facts& layout,
                             const plan_facts& plan) {
  const std::vector<std::string> names = layer_names(nodes), parameters = parameter_names(nodes, layout.slots);
  const auto bytes = [&](long elements) { return readable_memory(double(elements) * element_size); };
  const bool several = plan.first_of_segment.size() > 2;
  const auto placed = [&](int size, location at) {
    return at.offset < 0 ? std::string() : formatted("%d @ %d%s", size, at.offset, at.passes && several ? "*" : "");
  };
  const auto derived_size = [&](std::size_t g) {
    return (g + 1 < plan.groups.size() ? plan.groups[g + 1].derived : plan.derived) - plan.groups[g].derived;
  };

  std::string out =
      (plan.why == purpose::inference ? "plan of inference on " : "plan on ") + std::string(backend) + ": " + counted(nodes.size() - 1, "operation") + " in " + counted(plan.groups.size(), "group") +
      " and " + counted(plan.first_of_segment.size() - 1, "segment") + ", numbers of " + std::to_string(element_size) + " bytes\n";
  out += "  parameters  " + grouped(layout.trainable) + " trained, " + grouped(layout.state) + " state; arena " + bytes(layout.arena) +
         ", gradient of a leaf " + bytes(layout.trainable_arena) + "\n";
  if (plan.derived > 0) out += "  derived layouts of weights  " + bytes(plan.derived) + "\n";
  const std::string reuse = " (" + bytes(plan.unshared_workspace) + " without reuse)";
  out += several ? "  workspace   " + bytes(plan.workspace) + " per sample of a leaf, and " + bytes(plan.passing) +
                       " per sample of a micro-batch, with a *" + reuse + "\n"
                 : "  workspace   " + bytes(plan.passing) + " per sample" + reuse + ", for the samples of a micro-batch\n";
  if (plan.scratch + plan.scratch_per_sample > 0)
    out += "  scratch     " + bytes(plan.scratch) + " and " + bytes(plan.scratch_per_sample) + " per sample\n";
  if (plan.statistics > 0) out += "  statistics  " + std::to_string(plan.statistics) + " doubles per leaf\n";

  // Places are element @ offset, of one sample in the workspace and of parameters in the arena.
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> owned;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const parameter_slot& s = layout.slots[i];
    owned.push_back(
        parameters[i] + ' ' + shape_text(s.what.extents) + " @ " + std::to_string(s.offset) + (s.what.trainable ? "" : ", state"));
  }
  std::size_t segment = 0;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const group& it = plan.groups[g];
    if (segment + 1 < plan.first_of_segment.size() && plan.first_of_segment[segment] == int(g)) {
      if (several) rows.push_back({"segment " + std::to_string(segment)});
      if (segment++ == 0)
        rows.push_back(
            {"", "operations", "of", "output", "layers", "output @", "saved @", "gradient @", "derived @", "backward"});
    }
    std::string operations, inputs;
    for (int k = 0; k < it.count; ++k)
      operations += (k > 0 ? " + " : "") + std::string(nodes[std::size_t(it.first + k)].operation->name);
    for (int k = 0; k < it.arity; ++k)
      inputs += (k > 0 ? ", " : "") + (it.input[k] < 0 ? "batch" : '%' + std::to_string(it.input[k]));
    rows.push_back({'%' + std::to_string(g), operations + (it.kernel.exists ? "" : " (no kernel)"), inputs,
                    shape_text(nodes[std::size_t(it.first + it.count - 1)].out), layers_of_group(nodes, names, it),
                    placed(it.size, it.output), placed(it.kernel.saved, it.saved), placed(it.size, it.gradient),
                    derived_size(g) > 0 ? formatted("%ld @ %ld", derived_size(g), it.derived) : "",
                    plan.why == purpose::training ? backward_of_group(it) : ""});
  }
  out += aligned(rows);
  if (!owned.empty()) out += "parameters\n";
  for (const std::string& line : owned) out += "  " + line + '\n';
  return out;
}

}  // namespace detail

/// How a backend computes a program: the operations of each group (one kernel call), what it reads, its places as "elements @
/// offset", and whether backward stores or adds the gradients of its inputs. Optimizer state is not in it: its size is a run-time
/// value.
template <class Program, class Backend, purpose Why = purpose::training>
std::string plan_text() {
  constexpr const auto& p = plan_of<Program, Backend, Why>;
  constexpr const auto& l = layout_of<typename Program::items>;
  return detail::plan_text(Backend::name, int(sizeof(typename Program::value_type)), tape_of<typename Program::items>.nodes,
                           {{l.slots, std::size_t(l.count)}, l.size, l.trainable, l.trainable_count, l.state_count},
                           {infers_differently<Program> ? Why : purpose::training,
                            {p.groups, std::size_t(p.group_count)},
                            {p.first_of_segment, std::size_t(p.segment_count) + 1},
                            p.workspace,
                            p.passing,
                            p.unshared_workspace,
                            p.statistics,
                            p.scratch,
                            p.scratch_per_sample,
                            p.derived});
}

template <class Program, class Backend, purpose Why = purpose::training>
void print_plan(std::ostream& out) {
  out << plan_text<Program, Backend, Why>();
}

/// Of a trainer: how it trains, and how it predicts where that differs.
template <class Trainer>
  requires requires { typename Trainer::executor_type::backend; }
void print_plan(const Trainer&, std::ostream& out = std::cout) {
  using program = typename Trainer::program_type;
  using backend = typename Trainer::executor_type::backend;
  print_plan<program, backend>(out);
  if constexpr (infers_differently<program>) print_plan<program, backend, purpose::inference>(out << '\n');
}

}  // namespace strata
