// The contents of each place of a split program: groups of kernels, outputs, parameters, and the parts of a batch it reads.
#pragma once
#include <strata/concepts/batch_source.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/place_arenas.hpp>
#include <strata/program/stages/stage_plan.hpp>
#include <type_traits>
#include <vector>

namespace strata::core {

template <class Program, class Backend>
struct place_contents {
  using T = typename Program::value_type;
  using table_type = std::remove_cvref_t<decltype(Backend::split::table)>;
  static constexpr int places = table_type::places;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& arenas = arenas_of_places<Program, Backend>;

  static constexpr int place_of_group(int g) { return table_type::place_of(stage_plan_of<Program, Backend>.stage_of[g]); }
  static constexpr int place_of_output(int k) { return place_of_group(plan.output_group[k]); }
  static constexpr int home = place_of_output(0);
  static constexpr bool has_outputs_at_several_places = [] {
    for (int k = 0; k < plan.output_count; ++k)
      if (place_of_output(k) != home) return true;
    return false;
  }();

  /// The begins of the trained parameters of a place in the arena of the whole network.
  static std::vector<long> begins(int place) {
    std::vector<long> own;
    for (int s = 0; s < layout.count; ++s)
      if (layout.slots[s].what.trainable && arenas.slots[s].place == place) own.push_back(layout.slots[s].offset);
    return own;
  }
  /// The ranges of the trained parameters of a place in its arena. all: trained_ranges of the whole network.
  static std::vector<parameter_range> ranges(int place, const auto& all) {
    std::vector<parameter_range> own;
    detail::for_ranges_of_place(arenas, layout, all, place, [&](const parameter_range& range, int) { own.push_back(range); });
    return own;
  }
  /// The inputs and truths of a batch that a place reads.
  static samples<T> parts_of(int place, const samples<T>& batch) {
    samples<T> own;
    own.count = batch.count;
    for (int g = 0; g < plan.group_count; ++g) {
      if (place_of_group(g) != place) continue;
      for (int k = 0; k < plan.groups[g].arity; ++k)
        if (const int from = plan.groups[g].input[k]; from < 0) own.inputs[-1 - from] = batch.inputs[-1 - from];
      if (const int k = plan.groups[g].number_of_output; k >= 0) own.truths[k] = batch.truths[k];
    }
    return own;
  }
};

}  // namespace strata::core
