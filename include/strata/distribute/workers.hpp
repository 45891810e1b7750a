// Strategies whose places or ranks are the workers of a cluster. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/base/refused_arguments.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/resolvers/any_resolver.hpp>
#include <strata/synchronous/regrouping_executor.hpp>
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
  static constexpr int groups = Division::groups;
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
    communicator_type processes =
        detail::connect_workers(detail::members_that_train(name, resolver), options,
                                detail::describe_program<Program>(name + Division::template text<Program>(), seed,
                                                                  options.compute, options.communication, optimizer, 0),
                                Division::may_regroup ? Division::places() : 1);
    if constexpr (Division::may_regroup) {
      return {std::move(optimizer), seed, options.compute, std::move(processes)};
    } else {
      return Division::template make<Program>(std::move(processes), std::move(optimizer), seed, options.compute);
    }
  }
};

/// A type that divides nothing: Sentence is the diagnostic.
template <class Sentence>
  requires(!detail::divides_network<Sentence>)
struct workers<Sentence> : detail::refused_strategy {
  static_assert(detail::diagnosed<Sentence>[0]);
  using detail::refused_strategy::refused_strategy;
};

}  // namespace strata
