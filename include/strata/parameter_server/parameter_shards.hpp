// Shards: how the parameters of a network are divided among parameter servers.
#pragma once
#include <algorithm>
#include <climits>
#include <functional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <vector>

namespace strata {

namespace core {
/// The slice [begin, end) of the trained parameters, at multiples of slice_alignment, that one server keeps.
struct parameter_shard {
  long begin = 0, end = 0;
  int server = 0;

  constexpr long size() const { return end - begin; }
  friend constexpr bool operator==(const parameter_shard&, const parameter_shard&) = default;
};

/// The largest shard of any partitioner, in bytes, because a shard is one message: a worker pushes one gradient of it for each of
/// its subtrees of leaves. Only a parameter that must not be cut may be larger.
inline constexpr long largest_shard_bytes = 1 << 20;
}  // namespace core

// The partitioners of tf.distribute.experimental.partitioners: the number of shards for a number of bytes. They divide all
// parameters as one block, not each variable by itself, so small variables share a shard.
// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/partitioners/Partitioner

struct fixed_shards_partitioner {
  int num_shards = 1;
  int operator()(long) const { return num_shards; }
};

/// As many shards as possible, each of at least min_shard_bytes.
struct min_size_partitioner {
  long min_shard_bytes = 256 << 10;
  int max_shards = 1;
  int operator()(long bytes) const {
    return int(std::clamp<long>(bytes / std::max(1L, min_shard_bytes), 1, std::max(1, max_shards)));
  }
};

/// As few shards as possible, each of at most max_shard_bytes.
struct max_size_partitioner {
  long max_shard_bytes = core::largest_shard_bytes;
  int max_shards = 0;  // 0: no limit
  int operator()(long bytes) const {
    const long most = max_shards > 0 ? max_shards : INT_MAX, size = std::max(1L, max_shard_bytes);
    return int(std::clamp<long>((bytes + size - 1) / size, 1, most));
  }
};

/// A function from the bytes of all trained parameters to the number of shards.
using partitioner = std::function<int(long bytes)>;

namespace detail {
/// The number of shards from a partitioner. Throws strata_error for no server, no parameter or no shard.
inline int wanted_shards(long bytes, const partitioner& how, int servers) {
  if (servers < 1) throw_error("parameter_server: the cluster has no ps, so no process would keep the parameters");
  if (bytes < 1) throw_error("parameter_server: the network has no trained parameters, so the servers would keep nothing");
  const int wanted = how(bytes);
  if (wanted < 1) throw_error({"parameter_server: the partitioner returned ", wanted, " shards; at least one is needed"});
  return wanted;
}

/// Gives each shard to the server that has the fewest bytes so far.
inline void assign_servers(std::vector<parameter_shard>& shards, int servers) {
  std::vector<long> load(std::size_t(servers), 0);
  for (parameter_shard& s : shards) {
    const auto least = std::ranges::min_element(load);
    s.server = int(least - load.begin());
    *least += s.size();
  }
}

/// Shards of equal size, rounded to slice_alignment, in the order of the arena; each goes to the server that has the fewest bytes
/// so far. Throws strata_error for no server, no parameter or no shard.
inline std::vector<parameter_shard> partition(long size, long element_bytes, const partitioner& how, int servers) {
  const int wanted = wanted_shards(size * element_bytes, how, servers);
  const long units = (size + slice_alignment - 1) / slice_alignment;
  const long units_of_largest = std::max(1L, largest_shard_bytes / (slice_alignment * element_bytes));
  const long count = std::min(units, std::max<long>(wanted, (units + units_of_largest - 1) / units_of_largest));
  std::vector<parameter_shard> shards;
  for (long i = 0; i < count; ++i)
    shards.push_back(
        {std::min(size, units * i / count * slice_alignment), std::min(size, units * (i + 1) / count * slice_alignment)});
  assign_servers(shards, servers);
  return shards;
}
}  // namespace detail

namespace core {
/// Shards like those of detail::partition, but without a cut inside a parameter: for optimizers that take norms of whole
/// parameters. A shard is larger than largest_shard_bytes only if it is one parameter that is.
inline std::vector<parameter_shard> partition_between(std::span<const parameter_range> parameters, long element_bytes,
                                                      const partitioner& how, int servers) {
  const long size = parameters.empty() ? 0 : parameters.back().end;
  const int wanted = detail::wanted_shards(size * element_bytes, how, servers);
  const long enough = (size + wanted - 1) / wanted, most = largest_shard_bytes / element_bytes;
  std::vector<parameter_shard> shards;
  for (const parameter_range& p : parameters) {
    if (shards.empty() || shards.back().size() >= enough || p.end - shards.back().begin > most)
      shards.push_back({p.begin, p.begin});
    shards.back().end = p.end;
  }
  detail::assign_servers(shards, servers);
  return shards;
}

/// The bytes of the largest shard, but at least largest_shard_bytes: what messages have to hold.
inline std::size_t bytes_of_largest(std::span<const parameter_shard> shards, std::size_t element_bytes) {
  std::size_t most = std::size_t(largest_shard_bytes);
  for (const parameter_shard& s : shards) most = std::max(most, std::size_t(s.size()) * element_bytes);
  return most;
}
}  // namespace core

}  // namespace strata
