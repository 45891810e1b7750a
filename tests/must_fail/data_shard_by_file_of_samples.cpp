// error: auto_shard::file takes a data set that reads files
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/auto_shard.hpp>
using namespace strata;

auto mine() {
#ifdef TWIN
  using policy = data::auto_shard::data;
#else
  using policy = data::auto_shard::file;
#endif
  return data::shard_by<policy>(data::from_tensor_slices(std::vector{1, 2, 3}), 2, 0);
}
