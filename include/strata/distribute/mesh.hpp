// mesh: groups of ranks. Groups divide batches, the ranks of a group divide layers.
#pragma once
#include <strata/distribute/pipeline.hpp>
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/synchronous/agreed_ranks.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_executor.hpp>
#include <strata/synchronous/tensor_verdicts.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// So many groups, which divide each batch by leaves.
template <int Groups>
struct data_parallel {};

inline constexpr reason a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order{
    "a mesh has data_parallel, then pipeline or tensor_parallel, or first the one and then the other, in angle brackets: "
    "mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<rule<\"dense*\", by_columns>>>>{}"};
inline constexpr reason the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend{
    "the pipeline and the tensor_parallel of a mesh have the same backend"};
inline constexpr reason the_ranks_of_a_mesh_compute_on_the_cpu{
    "the ranks of a mesh compute on the CPU: write pipeline in place of gpu_pipeline, or gpu_pipeline without a mesh"};
namespace detail {
/// Whether the ranks of a mesh can have a backend.
template <class Backend>
inline constexpr bool is_of_ranks = std::is_same_v<typename engine_options<Backend>::type, compute_options>;

template <class... Given>
using wrong_mesh = wrong_argument<type_list<Given...>,
                                  because<a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order>>;
/// The first sentence about a mesh of processes: what connects them comes before its parts.
template <class OfFirst, class... Parts>
using mesh_verdict =
    std::conditional_t<std::is_same_v<typename OfFirst::type, no_complaint>, wrong_mesh<Parts...>, typename OfFirst::type>;

/// no_complaint, or why groups of pipelines cannot train a program. Backend: a split one.
template <class Program, int Groups, class Backend>
struct pipelines_verdict {
  static auto sentence() {
    using of_split = typename Backend::split::template verdict<Program>;
    if constexpr (Groups < 1)
      return std::type_identity<wrong_argument<data_parallel<Groups>, because<data_parallel_has_at_least_one_group>>>{};
    else if constexpr (!is_of_ranks<typename Backend::base>)
      return std::type_identity<wrong_argument<typename Backend::base, because<the_ranks_of_a_mesh_compute_on_the_cpu>>>{};
    else if constexpr (!std::is_same_v<typename of_split::type, no_complaint>)
      return of_split{};
    else
      return backend_verdict<Program, Backend>{};
  }
  using type = typename decltype(sentence())::type;
};

/// no_complaint, or why groups of pipelines whose ranks divide layers cannot train a program. Backend: that of the ranks.
template <class Program, int Groups, class Cut, class MicroBatches, class Schedule, class OfPipeline, int Ranks, class Map,
          class Backend>
struct pipelines_of_ranks_verdict {
  using split = pipelined<Cut, MicroBatches, Schedule>;
  static auto sentence() {
    using of_tensor = tensor_verdict<Program, Map, Ranks, Groups, Backend>;
    if constexpr (!is_of_ranks<OfPipeline>)
      return std::type_identity<wrong_argument<OfPipeline, because<the_ranks_of_a_mesh_compute_on_the_cpu>>>{};
    else if constexpr (!std::is_same_v<OfPipeline, Backend>)
      return std::type_identity<wrong_argument<type_list<OfPipeline, Backend>,
                                               because<the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend>>>{};
    else if constexpr (!std::is_same_v<typename of_tensor::type, no_complaint>)
      return of_tensor{};
    else
      return typename split::template verdict<program_of_rank<Program, Map, Ranks>>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

/// `mesh<data_parallel<2>, tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>{}`: two groups of two ranks, each a
/// thread. Each group computes its leaves of a batch as tensor_parallel does, and gradients are added in the tree of one device.
/// So the results are those of tensor_parallel with as many leaves, bit for bit, for any number of groups.
/// https://keras.io/api/distribution/layout_map
template <class... Parts>
struct mesh : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<detail::wrong_mesh<Parts...>>()));
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

/// `mesh<data_parallel<2>, pipeline<balanced<4>, micro_batches<8>>>{}`: two pipelines of four places, each place a thread. Each
/// pipeline computes its leaves of a batch; all share parameters, and gradients are added in the tree of one device. So the
/// results are those of one_device with as many leaves, bit for bit. With fewer leaves than groups some groups have nothing to
/// do.
template <int Groups, class Cut, class MicroBatches, class Schedule, class Backend>
struct mesh<data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, Backend>> {
  using backend = typename pipeline<Cut, MicroBatches, Schedule, Backend>::backend;
  static constexpr auto name = "mesh";
  static constexpr int groups = Groups;
  compute_options options{};  // threads is not used

  template <class Program>
  using verdict = detail::pipelines_verdict<Program, Groups, backend>;
  template <class Program>
  using executor = synchronous_executor<Program, backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    compute_options of_place = options;
    if (options.threads >= 0) of_place.threads = Groups;  // the executor refuses others
    return {std::move(optimizer), seed, of_place};
  }
};

/// `mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>>{}`: two groups of
/// two ranks, each of which computes its part of the layers in two stages. Each of the eight places is a thread. What a stage
/// has to send another goes from rank to the same rank; what ranks send each other, to the same place. Cuts are balanced by the
/// work of a rank. The results are those of tensor_parallel with as many leaves, bit for bit, for any number of groups and
/// stages.
template <int Groups, class Cut, class MicroBatches, class Schedule, class OfPipeline, int Ranks, class Map, class Backend>
struct mesh<data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, OfPipeline>, tensor_parallel<Ranks, Map, Backend>> {
  using split = pipelined<Cut, MicroBatches, Schedule>;
  static constexpr auto name = "mesh";
  static constexpr int groups_that_cut = Groups;  // each cuts its part of a batch into micro-batches
  compute_options options{};                      // threads is not used

  template <class Program>
  using verdict =
      detail::pipelines_of_ranks_verdict<Program, Groups, Cut, MicroBatches, Schedule, OfPipeline, Ranks, Map, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::all_ranks_in_one_process, split>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, detail::all_ranks_in_one_process(Groups * Ranks, split::table.places)};
  }
};

/// `mesh_among<C, data_parallel<2>, tensor_parallel<2, layout_map<...>>>{processes}`: a mesh whose ranks are processes, as in
/// tensor_parallel_among. Processes 0 and 1 are the first group. The trainer's constructor throws strata::error if the mesh has
/// not as many ranks as there are processes, or if these disagree about the mesh.
template <class C, class... Parts>
struct mesh_among : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<detail::mesh_verdict<detail::communicator_verdict<C>, Parts...>>()));
  using detail::refusing<one_device<>>::refusing;
};
template <class C, class... Given>
mesh_among(C, Given...) -> mesh_among<C, type_list<Given...>>;
template <communicator C, int Groups, int Ranks, class Map, class Backend>
struct mesh_among<C, data_parallel<Groups>, tensor_parallel<Ranks, Map, Backend>> {
  // See divides_into_ranks in process_memory.hpp.
  static constexpr int groups = Groups, ranks = Ranks;
  using backend_of_rank = tensor_backend<Backend>;
  template <class Program>
  using program_of_rank = strata::program_of_rank<Program, Map, Ranks>;

  static constexpr auto name = "mesh_among";
  C processes;
  compute_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<C>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    auto agreed = detail::agreed_ranks<Program, Map, Ranks, Groups>(processes, optimizer, seed, options);
    return {std::move(optimizer), seed, options, std::move(agreed)};
  }
};

/// `mesh_among<C, data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<...>>>{processes}`: a mesh of both,
/// whose eight places are processes: place p of rank r of group g is process (g * 2 + p) * 2 + r. So processes that exchange
/// parts of layers have neighbouring numbers. Between two epochs each process has all parameters; predict may be called then.
template <communicator C, int Groups, class Cut, class MicroBatches, class Schedule, class OfPipeline, int Ranks, class Map,
          class Backend>
struct mesh_among<C, data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, OfPipeline>,
                  tensor_parallel<Ranks, Map, Backend>> {
  using split = pipelined<Cut, MicroBatches, Schedule>;
  // See divides_into_stages_of_ranks in process_memory.hpp.
  static constexpr int groups = Groups, groups_that_cut = Groups, ranks = Ranks;
  using backend_of_rank = typename detail::backend_of_rank<Backend, split, C>::type;
  template <class Program>
  using program_of_rank = strata::program_of_rank<Program, Map, Ranks>;

  static constexpr auto name = "mesh_among";
  C processes;
  compute_options options{};  // threads is not used

  template <class Program>
  using verdict =
      detail::pipelines_of_ranks_verdict<Program, Groups, Cut, MicroBatches, Schedule, OfPipeline, Ranks, Map, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<C>, split>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    auto agreed =
        detail::agreed_ranks<Program, Map, Ranks, Groups>(processes, optimizer, seed, options, Groups, split::table.places);
    return {std::move(optimizer), seed, options, std::move(agreed)};
  }
};

/// `mesh_among<C, data_parallel<2>, pipeline<balanced<4>, micro_batches<8>>>{processes}`: a mesh whose ranks are processes, as in
/// pipeline_among. Processes 0 to 3 are the first pipeline. Processes with the same stages send each other their gradients when
/// the last micro-batch of a step is through. Throws strata::error for batches that the micro-batches of all groups do not
/// divide.
template <communicator C, int Groups, class Cut, class MicroBatches, class Schedule, class Backend>
struct mesh_among<C, data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, Backend>> {
  using of_pipeline = split_among<Backend, pipelined<Cut, MicroBatches, Schedule>, C>;
  using backend = of_pipeline;  // what process_memory_of plans
  static constexpr int groups = Groups;
  static constexpr auto name = "mesh_among";
  C processes;
  compute_options options{};  // threads: how many threads update, evaluate and predict in each process

  template <class Program>
  using verdict = detail::pipelines_verdict<Program, Groups, of_pipeline>;
  template <class Program>
  using executor = stage_executor<Program, of_pipeline, C, Groups>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes};
  }
};

}  // namespace strata
