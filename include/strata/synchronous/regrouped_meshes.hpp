// The meshes of a regrouping_executor: groups of pipelines, and of ranks that have parts of the layers.
#pragma once
#include <cstdint>
#include <memory>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/split_ranks.hpp>
#include <strata/synchronous/agreed_ranks.hpp>
#include <strata/synchronous/regrouping_executor.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_executor.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

/// What a regrouping_executor makes in each generation.
/// Split: void, or how the stages of a rank's part follow each other.
template <class Program, int Groups, int Ranks, class Map, class Backend, class Split = void>
struct groups_of_tensor_ranks {
  static constexpr int places_of_rank = [] {
    if constexpr (std::is_void_v<Split>)
      return 1;
    else
      return Split::table.places;
  }();
  static constexpr int places = Ranks * places_of_rank, first_groups = Groups;
  static constexpr bool divides_layers = true;
  template <communicator C>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, one_rank_per_process<C>, Split>;
  template <communicator C>
  static std::unique_ptr<executor<C>> make(C processes, const typename Program::optimizer& optimizer, std::uint64_t seed,
                                           const compute_options& compute, int groups_now) {
    auto ranks =
        agreed_ranks<Program, Map, Ranks, Groups>(std::move(processes), optimizer, seed, compute, groups_now, places_of_rank);
    return std::make_unique<executor<C>>(optimizer, seed, compute, std::move(ranks));
  }

  // What print_plan prints.
  using program_of_one = program_of_rank<Program, Map, Ranks>;
  using backend = typename backend_of_rank<Backend, Split, alone>::type;
  static constexpr int groups = Groups;
  static std::vector<listed_kernel> kernels() { return kernel_list<program_of_one, backend>(); }
};

template <class Program, int Groups, class Split, class Backend>
struct groups_of_pipelines {
  static constexpr int places = Split::table.places, first_groups = Groups;
  static constexpr bool divides_layers = false;
  template <communicator C>
  using executor = stage_executor<Program, split_among<Backend, Split, C>, C, Groups>;
  template <communicator C>
  static std::unique_ptr<executor<C>> make(C processes, const typename Program::optimizer& optimizer, std::uint64_t seed,
                                           const compute_options& compute, int groups) {
    return std::make_unique<executor<C>>(optimizer, seed, compute, std::move(processes), groups);
  }

  using backend = split_among<Backend, Split, alone>;  // what print_plan prints
};

}  // namespace strata::detail
