// explicit_cluster: the program itself gives all addresses.
#pragma once
#include <strata/resolvers/cluster.hpp>

namespace strata {

/// The content of TF_CONFIG as a value:
///
///     explicit_cluster{.worker = {"a:2222", "b:2222"}, .task = {role::worker, 1}}
///
/// Addresses are host:port. Throws strata_error for an address or a cluster that is not valid.
struct explicit_cluster {
  std::vector<std::string> chief{}, worker{}, ps{}, evaluator{};
  cluster_task task{};
  std::string run_id{};

  cluster operator()() const {
    cluster_spec spec{.task = task, .run_id = run_id};
    for (const role r : core::all_roles) {
      for (const std::string& address : r == role::chief ? chief : r == role::worker ? worker : r == role::ps ? ps : evaluator)
        spec[r].emplace_back(core::parse_endpoint(address));
    }
    return cluster(std::move(spec));
  }
};

}  // namespace strata
