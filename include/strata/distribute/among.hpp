// Strategies whose places or ranks are processes, which reach each other through a communicator.
#pragma once
#include <cstdint>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/device_mesh.hpp>
#include <strata/program/compute_options.hpp>
#include <strata/program/stages/by_device.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <strata/synchronous/tensor_ranks.hpp>
#include <utility>

namespace strata {

namespace core {

/// A division of a network, pipelines or tensor_ranks, each of whose places is a process, on this or other machines:
/// pipeline_among, placed_among, tensor_parallel_among and device_mesh_among. C is any communicator. Each process passes its own
/// end; all run the same program, read the same batches and make the same calls. A process keeps the parameters, slots, gradients
/// and activations of its part only; between two epochs each has all parameters. process_memory_of returns how many bytes it
/// needs. The results are those of in_threads, bit for bit. The trainer's constructor throws strata_error if there are
/// not as many processes as places, or if they have different programs or divisions.
template <class Division, class C>
struct among {
  using division = Division;
  using communicator_type = C;
  using backend = typename Division::template backend_among<C>;
  static constexpr auto name = Division::name;
  C processes;
  compute_options options{};  // threads: how many threads update, evaluate and predict in each process of a pipeline

  template <class Program>
  using verdict = typename Division::template verdict<Program>;
  template <class Program>
  using executor = typename Division::template executor<Program, C>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return Division::template make<Program>(processes, std::move(optimizer), seed, options);
  }
};

/// A strategy whose C is not a communicator: it emits the diagnostic.
template <class Division, class C>
  requires(!communicator<C>)
struct among<Division, C> : detail::refused_strategy {
  static_assert(detail::diagnosed<typename detail::communicator_verdict<C>::type>[0]);
  using detail::refused_strategy::refused_strategy;
};

}  // namespace core

/// `pipeline_among<C, balanced<4>, micro_batches<8>>{processes}`: pipeline, where each place is a process. See core::among.
template <class C, class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = core::default_backend>
using pipeline_among = core::among<core::pipelines<1, core::pipelined<Cut, MicroBatches, Schedule>, Backend>, C>;

/// placed, where each device is a process: device k is process k.
template <class C, int Devices, class Backend = core::default_backend>
using placed_among = core::among<core::pipelines<1, core::by_device<Devices>, Backend>, C>;

/// `tensor_parallel_among<C, 2, layout_map<rule<"dense*", by_columns>>>{processes}`: tensor_parallel, where each rank is a
/// process.
template <class C, int Ranks, class Map, class Backend = core::default_backend>
using tensor_parallel_among = core::among<core::tensor_ranks<1, Ranks, Map, Backend>, C>;

/// `device_mesh_among<C, data_parallel<2>, tensor_parallel<2, layout_map<...>>>{processes}`: a mesh whose ranks are processes.
/// Consecutive processes form a group; with a pipeline and tensor_parallel, place p of rank r of group g is process (g
/// * places + p) * ranks + r, so processes that exchange parts of layers have neighbouring numbers. Processes with the same
/// stages send each other their gradients when the last micro-batch of a step is through. Throws strata_error for batches
/// that the micro-batches of all groups do not divide.
template <class C, class... Parts>
using device_mesh_among = core::among<typename detail::mesh_of<Parts...>::type, C>;

}  // namespace strata
