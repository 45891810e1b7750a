// The plan of a program as text: fused operations, their inputs, places in memory, and what backward does.
#pragma once
#include <algorithm>
#include <iostream>
#include <strata/base/linkage.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/base/text_table.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/micro_batch.hpp>
#include <type_traits>

namespace strata {

namespace detail {

/// The members of plan<Nodes> without its type, so that printing is compiled once.
struct plan_info {
  purpose why;
  std::span<const kernel_group> groups;
  std::span<const int> first_of_segment, first_of_piece;
  int workspace, passing, unshared_workspace, statistics, scratch, scratch_per_sample;
  long derived;
  int most_samples;            // of a micro-batch, in a budget; 0: as many as the cache holds
  bool computes_whole_leaves;  // a micro-batch is all samples
};

struct layout_info {
  std::span<const parameter_slot> slots;
  long arena, trainable_arena, trainable, state;
};

/// The gradients that backward of a group writes: "dw, stores dx of %1, adds to dx of %0". "none": neither the group nor those
/// before it have trained parameters.
std::string backward_of_group(const kernel_group& g);

std::string counted(std::size_t n, std::string_view what);

/// Defined in program/stages/print_stages.hpp, which comes with the engines of split programs.
template <class Program, class Backend>
struct please_include_strata_program_stages_print_stages;
/// Defined in program/print_divisions.hpp, which comes with the engines of divided layers.
template <class Network>
struct please_include_strata_program_print_divisions;

/// where: the backend, and the precision.
std::string plan_text(std::string_view where, int element_size, std::span<const tape_node> nodes, const layout_info& layout,
                      const plan_info& plan);

}  // namespace detail

/// How a backend computes a program: for each group (one kernel call) its operations, its inputs, its places in memory as
/// "elements @ offset", and whether backward stores the gradients of its inputs or adds to them. Optimizer state is not included,
/// because its size is a run-time value.
template <class Program, class Backend, core::purpose Why = core::purpose::training>
std::string plan_text() {
  constexpr const auto& p = core::plan_of<Program, Backend, Why>;
  constexpr const auto& l = core::layout_of<typename Program::items>;
  const detail::layout_info layout{std::span(l.slots, std::size_t(l.count)), l.size, l.trainable, l.trainable_count,
                                   l.state_count};
  constexpr bool computes_whole_leaves = !core::device_of<Backend>::is_host && !requires { typename Backend::split; };
  const detail::plan_info plan{core::has_two_plans<Program, Backend> ? Why : core::purpose::training,
                               std::span(p.groups, std::size_t(p.group_count)),
                               std::span(p.first_of_segment, std::size_t(p.segment_count) + 1),
                               std::span(p.first_of_piece, p.piece_count > 1 ? std::size_t(p.piece_count) + 1 : 0),
                               p.workspace,
                               p.passing,
                               p.unshared_workspace,
                               p.statistics,
                               p.scratch,
                               p.scratch_per_sample,
                               p.derived,
                               core::bounds_activations<Backend> ? core::samples_at_a_time<Program, Backend, Why>::of() : 0,
                               computes_whole_leaves};
  std::string where = Backend::name;
  if constexpr (requires { Program::precision::name; }) where += detail::text_of({" in ", Program::precision::name});
  return detail::plan_text(where, int(sizeof(typename Program::value_type)), core::tape_of<typename Program::items>.nodes, layout,
                           plan);
}

/// groups: of a mesh, each with all ranks, or with all places of a pipeline.
template <class Program, class Backend, core::purpose Why = core::purpose::training>
void print_plan(std::ostream& out, int groups = 1) {
  out << plan_text<Program, Backend, Why>();
  if constexpr (Why == core::purpose::training && requires { typename Backend::split; })
    out << detail::please_include_strata_program_stages_print_stages<Program, Backend>::text(
        requires { Program::network::ranks; } ? 1 : groups);
  if constexpr (Why == core::purpose::training && requires { Program::network::ranks; })
    out << detail::please_include_strata_program_print_divisions<typename Program::network>::text(
        int(sizeof(typename Program::value_type)), groups);
}

namespace detail {
/// The program of a trainer; of its ranks if they divide layers.
template <class Trainer>
struct planned_program {
  using type = typename Trainer::program_type;
};
template <class Trainer>
  requires requires { typename Trainer::executor_type::program_of_one; }
struct planned_program<Trainer> {
  using type = typename Trainer::executor_type::program_of_one;
};
/// The groups that divide batches. No second constrained specialization of a variable template: nvcc 13 refuses it.
template <class Strategy>
inline constexpr int groups_of_strategy = [] {
  if constexpr (requires { Strategy::division::groups; })
    return Strategy::division::groups;
  else
    return 1;
}();
}  // namespace detail

/// The plan of a trainer for training, and that for inference where they differ.
template <class Trainer>
  requires requires { typename Trainer::executor_type::backend; }
void print_plan(const Trainer&, std::ostream& out = std::cout) {
  using program = typename detail::planned_program<Trainer>::type;
  using backend = typename Trainer::executor_type::backend;
  print_plan<program, backend>(out, detail::groups_of_strategy<typename Trainer::strategy_type>);
  if constexpr (core::has_two_plans<program, backend>) print_plan<program, backend, core::purpose::inference>(out << '\n');
}

}  // namespace strata

#if STRATA_DEFINES
#include <strata/program/print_plan.ipp>
#endif
