// Strategies whose places or ranks are processes, which reach each other through a communicator.
#pragma once
#include <cstdint>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/program/compute_options.hpp>
#include <type_traits>
#include <utility>

namespace strata::core {

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
  static constexpr int groups = Division::groups;
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

/// Of what is no communicator, or divides nothing.
template <class Division, class C>
  requires(!communicator<C> || !detail::divides_network<Division>)
struct among<Division, C> : detail::refused_strategy {
  using of_communicator = typename detail::communicator_verdict<C>::type;
  static_assert(detail::diagnosed<std::conditional_t<communicator<C>, Division, of_communicator>>[0]);
  using detail::refused_strategy::refused_strategy;
};

}  // namespace strata::core
