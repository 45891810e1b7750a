// multi_worker_mesh: a mesh of the workers of a cluster. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <strata/distribute/connect_divided_workers.hpp>
#include <strata/distribute/mesh.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/synchronous/agreed_ranks.hpp>
#include <strata/synchronous/agreed_values.hpp>
#include <strata/synchronous/regrouped_meshes.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_executor.hpp>
#include <strata/synchronous/tensor_verdicts.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata {

/// `multi_worker_mesh<tf_config, data_parallel<2>, tensor_parallel<2, layout_map<...>>>{}`: a mesh whose ranks are the workers
/// of a cluster. Workers with consecutive numbers form a group. Each worker runs the same program on the same data set. With
/// several groups and elastic_options the training goes on when workers are lost, as long as the chief and one worker of each
/// place of a group are left: in as many complete groups as there are, to the same bits. Throws as multi_worker_mirrored does;
/// elastic_options are refused where there is one group.
template <class Resolver, class... Parts>
struct multi_worker_mesh : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<detail::mesh_verdict<detail::resolver_verdict<Resolver>, Parts...>>()));
  using detail::refusing<one_device<>>::refusing;
};
template <class Resolver, class... Given>
multi_worker_mesh(Resolver, Given...) -> multi_worker_mesh<Resolver, type_list<Given...>>;
template <cluster_resolver Resolver, int Groups, int Ranks, class Map, class Backend>
struct multi_worker_mesh<Resolver, data_parallel<Groups>, tensor_parallel<Ranks, Map, Backend>> {
  using communicator = control::worker_connections;
  using fit_callback = late_workers;
  // See divides_into_ranks in process_memory.hpp.
  static constexpr int groups = Groups, ranks = Ranks;
  using backend_of_rank = tensor_backend<Backend>;
  template <class Program>
  using program_of_rank = strata::program_of_rank<Program, Map, Ranks>;

  static constexpr auto name = "multi_worker_mesh";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
  template <class Program>
  using executor = std::conditional_t<
      (Groups > 1),
      regrouping_executor<Program, detail::groups_of_tensor_ranks<Program, Groups, Ranks, Map, Backend>, communicator>,
      tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<communicator>>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    communicator processes =
        detail::connect_divided_workers<Program>(*this, optimizer, seed, Groups > 1 ? Ranks : 0,
                                                 detail::text_of({", ", Groups, " groups of ", Ranks, " ranks that divide ",
                                                                  detail::text_of_divided_layers<Program, Map, Ranks>()}));
    if constexpr (Groups > 1) {
      return {std::move(optimizer), seed, options.compute, std::move(processes)};
    } else {
      auto agreed = detail::agreed_ranks<Program, Map, Ranks, Groups>(std::move(processes), optimizer, seed, options.compute);
      return {std::move(optimizer), seed, options.compute, std::move(agreed)};
    }
  }
};

/// `multi_worker_mesh<tf_config, data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<...>>>{}`: two groups of
/// two ranks, each of which has two workers, see mesh_among.
template <cluster_resolver Resolver, int Groups, class Cut, class MicroBatches, class Schedule, class OfPipeline, int Ranks,
          class Map, class Backend>
struct multi_worker_mesh<Resolver, data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, OfPipeline>,
                         tensor_parallel<Ranks, Map, Backend>> {
  using communicator = control::worker_connections;
  using split = pipelined<Cut, MicroBatches, Schedule>;
  using fit_callback = late_workers;
  // See divides_into_stages_of_ranks in process_memory.hpp.
  static constexpr int groups = Groups, groups_that_cut = Groups, ranks = Ranks;
  using backend_of_rank = typename detail::backend_of_rank<Backend, split, communicator>::type;
  template <class Program>
  using program_of_rank = strata::program_of_rank<Program, Map, Ranks>;

  static constexpr auto name = "multi_worker_mesh";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using verdict =
      detail::pipelines_of_ranks_verdict<Program, Groups, Cut, MicroBatches, Schedule, OfPipeline, Ranks, Map, Backend>;
  template <class Program>
  using executor = std::conditional_t<
      (Groups > 1),
      regrouping_executor<Program, detail::groups_of_tensor_ranks<Program, Groups, Ranks, Map, Backend, split>, communicator>,
      tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<communicator>, split>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    constexpr int places = split::table.places;
    std::string stages;
    for (const int stage : split::template stage_of_node<typename program_of_rank<Program>::items>)
      stages += detail::text_of({" ", stage});
    communicator processes = detail::connect_divided_workers<Program>(
        *this, optimizer, seed, Groups > 1 ? Ranks * places : 0,
        detail::text_of({", ", Groups, " groups of ", places, " places with the stages", stages, " and the turns",
                         detail::text_of_turns(split::table), " of ", Ranks, " ranks that divide ",
                         detail::text_of_divided_layers<Program, Map, Ranks>()}));
    if constexpr (Groups > 1) {
      return {std::move(optimizer), seed, options.compute, std::move(processes)};
    } else {
      auto agreed = detail::agreed_ranks<Program, Map, Ranks, Groups>(std::move(processes), optimizer, seed, options.compute,
                                                                      Groups, places);
      return {std::move(optimizer), seed, options.compute, std::move(agreed)};
    }
  }
};

/// `multi_worker_mesh<tf_config, data_parallel<2>, pipeline<balanced<4>, micro_batches<8>>>{}`: two pipelines of four workers
/// each.
template <cluster_resolver Resolver, int Groups, class Cut, class MicroBatches, class Schedule, class Backend>
struct multi_worker_mesh<Resolver, data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, Backend>> {
  using communicator = control::worker_connections;
  using split = pipelined<Cut, MicroBatches, Schedule>;
  using of_pipeline = split_among<Backend, split, communicator>;
  using fit_callback = late_workers;
  using backend = of_pipeline;  // what process_memory_of plans
  static constexpr int groups = Groups;
  static constexpr auto name = "multi_worker_mesh";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using verdict = detail::pipelines_verdict<Program, Groups, of_pipeline>;
  template <class Program>
  using executor =
      std::conditional_t<(Groups > 1),
                         regrouping_executor<Program, detail::groups_of_pipelines<Program, Groups, split, Backend>, communicator>,
                         stage_executor<Program, of_pipeline, communicator, Groups>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    std::string stages;
    for (const int stage : split::template stage_of_node<typename Program::items>) stages += detail::text_of({" ", stage});
    communicator processes = detail::connect_divided_workers<Program>(
        *this, optimizer, seed, Groups > 1 ? split::table.places : 0,
        detail::text_of({", ", Groups, " groups of ", split::table.places, " places with the stages", stages, " and the turns",
                         detail::text_of_turns(split::table)}));
    return {std::move(optimizer), seed, options.compute, std::move(processes)};
  }
};

}  // namespace strata
