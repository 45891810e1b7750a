// mesh: groups of ranks. Groups divide batches, the ranks of a group divide layers.
#pragma once
#include <strata/distribute/tensor_parallel.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// So many groups, which divide each batch by leaves.
template <int Groups>
struct data_parallel {};

inline constexpr reason a_mesh_has_data_parallel_and_then_tensor_parallel_in_angle_brackets{
    "a mesh has data_parallel, then tensor_parallel, in angle brackets: mesh<data_parallel<2>, tensor_parallel<2, "
    "layout_map<...>>>{}"};
namespace detail {
template <class... Given>
using wrong_mesh =
    wrong_argument<type_list<Given...>, because<a_mesh_has_data_parallel_and_then_tensor_parallel_in_angle_brackets>>;
/// The first sentence about a mesh of processes: what connects them comes before its parts.
template <class OfFirst, class... Parts>
using mesh_verdict =
    std::conditional_t<std::is_same_v<typename OfFirst::type, no_complaint>, wrong_mesh<Parts...>, typename OfFirst::type>;
}  // namespace detail

/// `mesh<data_parallel<2>, tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>{}`: two groups of two ranks, each a
/// thread. Each group computes its leaves of a batch as tensor_parallel does, and gradients are added in the tree of one device.
/// So the results are those of tensor_parallel with as many leaves, bit for bit, for any number of groups.
/// https://keras.io/api/distribution/layout_map
template <class... Parts>
struct mesh : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::spoken<detail::wrong_mesh<Parts...>>()) > 0, "the strategy takes other arguments");
  using detail::refusing<one_device<>>::refusing;
};
template <class... Given>
mesh(Given...) -> mesh<type_list<Given...>>;
template <int Groups, int Ranks, class Map, class Backend>
struct mesh<data_parallel<Groups>, tensor_parallel<Ranks, Map, Backend>> {
  static constexpr auto name = "mesh";
  compute_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::all_ranks_in_one_process>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, detail::all_ranks_in_one_process(Groups * Ranks)};
  }
};

/// `mesh_among<C, data_parallel<2>, tensor_parallel<2, layout_map<...>>>{processes}`: a mesh whose ranks are processes, as in
/// tensor_parallel_among. Processes 0 and 1 are the first group. The trainer's constructor throws strata::error if the mesh has
/// not as many ranks as there are processes, or if these disagree about the mesh.
template <class C, class... Parts>
struct mesh_among : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::spoken<detail::mesh_verdict<detail::communicator_verdict<C>, Parts...>>()) > 0,
                "the strategy takes other arguments");
  using detail::refusing<one_device<>>::refusing;
};
template <class C, class... Given>
mesh_among(C, Given...) -> mesh_among<C, type_list<Given...>>;
template <communicator C, int Groups, int Ranks, class Map, class Backend>
struct mesh_among<C, data_parallel<Groups>, tensor_parallel<Ranks, Map, Backend>> {
  static constexpr auto name = "mesh_among";
  C processes;
  compute_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<C>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    auto ranks = detail::agreed_ranks<Program, Map, Ranks, Groups>(processes, optimizer, seed, options);
    return {std::move(optimizer), seed, options, std::move(ranks)};
  }
};

}  // namespace strata
