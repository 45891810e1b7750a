// error: each worker would shuffle by itself, and shards would overlap
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
using namespace strata;

auto mine() {
  const auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  return set | data::shuffle(3, data::shared_seed{1}) | data::shard(2, 0);
#else
  return data::shard(set | data::shuffle(3, {.seed = 1}), 2, 0);
#endif
}
