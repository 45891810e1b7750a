// A parameter server without a network, for fuzz targets: two workers, two shards, and a table in the first of them.
#pragma once
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/parameter_server/parameter_store.hpp>

#include <vector>

namespace strata::fuzz {
using namespace core;

struct small_server {
  static constexpr long shard_size = 64;
  parameter_store<float, sgd> store;

  explicit small_server(staleness_policy staleness = {})
      : store(sgd{.learning_rate = 0.1, .momentum = 0.9}, std::vector<parameter_range>{{0, 2 * shard_size}},
              {{0, shard_size, 0}, {shard_size, 2 * shard_size, 0}},
              {.staleness = staleness, .workers = {"chief", "worker 0"}, .metric_sums_width = 2, .tables = {{16, 8, 3, 0}}}) {}
};

}  // namespace strata::fuzz
