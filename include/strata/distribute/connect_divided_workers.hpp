// How strategies meet whose workers have a part of the layers each. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <algorithm>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <string>

namespace strata::detail {

/// Connects the workers of the cluster that the strategy's resolver names. places: of a group of a mesh, whose groups may leave;
/// 0: the training is not elastic. division: which part each worker has, in words; a late worker with another one is refused.
/// Throws as connect_workers does, and strata::error for elastic_options where the training is not elastic.
template <class Program, class Strategy>
control::worker_connections connect_divided_workers(const Strategy& strategy, const typename Program::optimizer& optimizer,
                                                    std::uint64_t seed, int places = 0, const std::string& division = {}) {
  const multi_worker_options& options = strategy.options;
  if (options.elastic.least_workers > 0 && places == 0) throw_error(divided_layers_are_not_elastic);
  return connect_workers(
      members_that_train(Strategy::name, strategy.resolver), options,
      describe_program<Program>(Strategy::name, seed, options.compute, options.communication, optimizer, 0) + division,
      std::max(1, places));
}

}  // namespace strata::detail
