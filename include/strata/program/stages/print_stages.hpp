// The stages of a split program as text: who computes what and when, what is sent, and the memory of each place.
#pragma once
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/base/text_table.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/stages/stage_plan.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

namespace detail {
/// The members of stage_plan and timetable without their types, so that printing is compiled once.
struct stage_info {
  std::string_view place, schedule;
  int groups, places, micro_batches;
  std::span<const int> stage_of;   // of each group
  std::span<const long> memory;    // of each stage, in elements per sample of a micro-batch
  std::span<const int> in_flight;  // of each stage
  std::span<const stage_transfer> transfers;
  std::span<const turn> turns;  // of all places, one after the other
  std::span<const int> ends;    // of each turn
  double bubble;
};
std::string stages_text(int element_size, const stage_info& info);
}  // namespace detail

namespace core {
/// A line for each stage with its groups as print_plan numbers them, one for each transfer, and for a pipeline its timetable.
/// There F3 is micro-batch 3 forward, B3 backward, which is drawn twice as long; of several stages of a place, the first is "a".
/// groups: of a mesh, each with all places.
template <class Program, class Backend>
std::string stages_text(int groups = 1) {
  constexpr const auto& s = stage_plan_of<Program, Backend>;
  constexpr const auto& table = Backend::split::table;
  constexpr int stages = s.stages;
  static constexpr auto times = table.simulate();
  long memory[stages];
  int in_flight[stages];
  for (int k = 0; k < stages; ++k) memory[k] = s.memory_of(k, in_flight[k] = table.in_flight(k));
  std::string_view schedule;
  if constexpr (requires { Backend::split::schedule::name; }) schedule = Backend::split::schedule::name;
  const detail::stage_info all{.place = Backend::split::place,
                               .schedule = schedule,
                               .groups = groups,
                               .places = table.places,
                               .micro_batches = table.micro_batches,
                               .stage_of = std::span(s.stage_of, std::size_t(plan_of<Program, Backend>.group_count)),
                               .memory = memory,
                               .in_flight = in_flight,
                               .transfers = std::span(s.transfers, std::size_t(s.transfer_count)),
                               .turns = std::span(table.turns[0].data(), std::size_t(table.places * table.turns_of_place)),
                               .ends = std::span(times.end[0].data(), std::size_t(table.places * table.turns_of_place)),
                               .bubble = table.bubble()};  // named: nvcc 13.0 loses the type of a braced argument here
  return detail::stages_text(int(sizeof(typename Program::value_type)), all);
}
}  // namespace core

namespace detail {
/// What print_plan calls.
template <class Program, class Backend>
struct please_include_strata_program_stages_print_stages {
  static std::string text(int groups) { return strata::core::stages_text<Program, Backend>(groups); }
};
}  // namespace detail

}  // namespace strata

#if STRATA_DEFINES
#include <strata/program/stages/print_stages.ipp>
#endif
