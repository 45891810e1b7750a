// multi_worker_mesh: a mesh of the workers of a cluster. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <strata/distribute/connect_divided_workers.hpp>
#include <strata/distribute/mesh.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <utility>

namespace strata {

/// `multi_worker_mesh<tf_config, data_parallel<2>, tensor_parallel<2, layout_map<...>>>{}`: a mesh whose ranks are the workers
/// of a cluster. Workers with consecutive numbers form a group. Each worker runs the same program on the same data set. Throws as
/// multi_worker_mirrored does; elastic_options are refused, because each worker has a part of the layers.
template <class Resolver, class... Parts>
struct multi_worker_mesh : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::spoken<detail::mesh_verdict<detail::resolver_verdict<Resolver>, Parts...>>()) > 0,
                "the strategy takes other arguments");
  using detail::refusing<one_device<>>::refusing;
};
template <class Resolver, class... Given>
multi_worker_mesh(Resolver, Given...) -> multi_worker_mesh<Resolver, type_list<Given...>>;
template <cluster_resolver Resolver, int Groups, int Ranks, class Map, class Backend>
struct multi_worker_mesh<Resolver, data_parallel<Groups>, tensor_parallel<Ranks, Map, Backend>> {
  using communicator = control::worker_connections;
  static constexpr auto name = "multi_worker_mesh";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using verdict = detail::tensor_verdict<Program, Map, Ranks, Groups, Backend>;
  template <class Program>
  using executor = tensor_executor<Program, Map, Ranks, Groups, Backend, detail::one_rank_per_process<communicator>>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    auto ranks = detail::agreed_ranks<Program, Map, Ranks, Groups>(
        detail::connect_divided_workers<Program>(*this, optimizer, seed), optimizer, seed, options.compute);
    return {std::move(optimizer), seed, options.compute, std::move(ranks)};
  }
};

/// `multi_worker_mesh<tf_config, data_parallel<2>, pipeline<balanced<4>, micro_batches<8>>>{}`: two pipelines of four workers
/// each.
template <cluster_resolver Resolver, int Groups, class Cut, class MicroBatches, class Schedule, class Backend>
struct multi_worker_mesh<Resolver, data_parallel<Groups>, pipeline<Cut, MicroBatches, Schedule, Backend>> {
  using communicator = control::worker_connections;
  using of_pipeline = split_among<Backend, pipelined<Cut, MicroBatches, Schedule>, communicator>;
  static constexpr auto name = "multi_worker_mesh";
  Resolver resolver{};
  multi_worker_options options{};

  template <class Program>
  using verdict = detail::pipelines_verdict<Program, Groups, of_pipeline>;
  template <class Program>
  using executor = stage_executor<Program, of_pipeline, communicator, Groups>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    communicator processes = detail::connect_divided_workers<Program>(*this, optimizer, seed);
    return {std::move(optimizer), seed, options.compute, std::move(processes)};
  }
};

}  // namespace strata
