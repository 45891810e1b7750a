// Strategies whose places or ranks are the workers of a cluster: multi_worker_pipeline, multi_worker_tensor_parallel and
// multi_worker_mesh. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <strata/resolvers/any_resolver.hpp>  // first: its diagnostic then has few lines

#include <algorithm>
#include <cstdint>
#include <strata/distribute/device_mesh.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/regrouping_executor.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_ranks.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// A division of a network, pipelines or tensor_ranks, each of whose places is a worker: multi_worker_pipeline,
/// multi_worker_tensor_parallel and multi_worker_mesh. Workers with consecutive numbers form a group; the chief, or worker 0, has
/// the first place. Each worker runs the same program on the same data set. With several groups of two parts and elastic_options
/// the training goes on when workers are lost, as long as the chief and one worker of each place of a group are left: in as many
/// complete groups as there are, to the same bits. Throws as multi_worker_mirrored does; elastic_options are refused elsewhere.
template <class Division>
struct workers {
  using division = Division;
  using communicator_type = control::worker_connections;
  using backend = typename Division::template backend_among<communicator_type>;
  using fit_callback = core::late_workers;
  static constexpr auto name = Division::name;
  any_resolver resolver;
  multi_worker_options options{};

  template <class Program>
  using verdict = typename Division::template verdict<Program>;
  template <class Program>
  using executor = std::conditional_t<Division::may_regroup, core::regrouping_executor<Program, Division, communicator_type>,
                                      typename Division::template executor<Program, communicator_type>>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    if (options.elastic.least_workers > 0 && !Division::may_regroup) throw_error(core::divided_layers_are_not_elastic);
    communicator_type processes = detail::connect_workers<Program>(
        detail::members_that_train(name, resolver), options, name + Division::template text<Program>(), seed, options.compute,
        optimizer, Division::may_regroup ? Division::places() : 1);
    if constexpr (Division::may_regroup) {
      return {std::move(optimizer), seed, options.compute, std::move(processes)};
    } else {
      return Division::template make<Program>(std::move(processes), std::move(optimizer), seed, options.compute);
    }
  }
};

/// `multi_worker_pipeline<balanced<4>, micro_batches<8>>{tf_config()}`: pipeline, each place of which is a worker.
template <class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = core::default_backend>
using multi_worker_pipeline = workers<core::pipelines<1, core::pipelined<Cut, MicroBatches, Schedule>, Backend>>;

/// `multi_worker_tensor_parallel<2, layout_map<rule<"dense*", by_columns>>>{tf_config()}`: tensor_parallel, each rank of which is
/// a worker.
template <int Ranks, class Map, class Backend = core::default_backend>
using multi_worker_tensor_parallel = workers<core::tensor_ranks<1, Ranks, Map, Backend>>;

/// `multi_worker_mesh<data_parallel<2>, tensor_parallel<2, layout_map<...>>>{tf_config()}`: a mesh, each rank of which is a
/// worker. See device_mesh_among for their order.
template <class... Parts>
using multi_worker_mesh = workers<typename detail::mesh_of<Parts...>::type>;

}  // namespace strata
