// How the parameters of a network are cut into shards, and which parameter server keeps which.
#pragma once
#include <algorithm>
#include <climits>
#include <functional>
#include <strata/base/error.hpp>
#include <strata/cpu/update.hpp>
#include <string>
#include <vector>

namespace strata {

/// A contiguous slice [begin, end) of the trained parameters, at multiples of slice_alignment, which one server keeps.
struct parameter_shard {
  long begin = 0, end = 0;
  int server = 0;

  constexpr long size() const { return end - begin; }
  friend constexpr bool operator==(const parameter_shard&, const parameter_shard&) = default;
};

/// A shard is no larger, whatever a partitioner says: it travels as one message, of as many of them as a worker has subtrees of
/// leaves.
inline constexpr long largest_shard_bytes = 1 << 20;

// The partitioners of tf.distribute.experimental.partitioners: how many shards for so many bytes. They see all parameters as
// one block, not each variable by itself, so that small ones share a shard.
// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/partitioners/Partitioner

struct fixed_shards_partitioner {
  int num_shards = 1;
  int operator()(long) const { return num_shards; }
};

/// As many as possible, each of at least so many bytes.
struct min_size_partitioner {
  long min_shard_bytes = 256 << 10;
  int max_shards = 1;
  int operator()(long bytes) const {
    return int(std::clamp<long>(bytes / std::max(1L, min_shard_bytes), 1, std::max(1, max_shards)));
  }
};

/// As few as possible, each of at most so many bytes.
struct max_size_partitioner {
  long max_shard_bytes = largest_shard_bytes;
  int max_shards = 0;  // 0: no limit
  int operator()(long bytes) const {
    const long most = max_shards > 0 ? max_shards : INT_MAX, size = std::max(1L, max_shard_bytes);
    return int(std::clamp<long>((bytes + size - 1) / size, 1, most));
  }
};

/// Any function from the bytes of all trained parameters to a number of shards.
using partitioner = std::function<int(long bytes)>;

/// Shards of equal size, but for slice_alignment, in the order of the arena; each goes to the server that has the fewest bytes
/// so far. Throws strata::error for no server or no shard.
inline std::vector<parameter_shard> partition(long size, long element_bytes, const partitioner& how, int servers) {
  if (servers < 1) throw error("parameter_server: the cluster has no ps, so that nobody would keep the parameters");
  const int wanted = how(size * element_bytes);
  if (wanted < 1)
    throw error("parameter_server: the partitioner wants " + std::to_string(wanted) +
                " shards, but there has to be one at least");
  const long units = (size + slice_alignment - 1) / slice_alignment;
  const long units_of_largest = std::max(1L, largest_shard_bytes / (slice_alignment * element_bytes));
  const long count = std::min(units, std::max<long>(wanted, (units + units_of_largest - 1) / units_of_largest));
  std::vector<long> load(std::size_t(servers), 0);
  std::vector<parameter_shard> shards;
  for (long i = 0; i < count; ++i) {
    const auto least = std::ranges::min_element(load);
    shards.push_back({std::min(size, units * i / count * slice_alignment),
                      std::min(size, units * (i + 1) / count * slice_alignment), int(least - load.begin())});
    *least += shards.back().size();
  }
  return shards;
}

}  // namespace strata
