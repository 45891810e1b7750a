// error: a cache file holds no weights: put data::sample_weight after data::cache\(path\)
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/sample_weight.hpp>
using namespace strata;

auto kept() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
  const std::vector weights{1.0f, 2.0f, 0.5f};
#ifdef TWIN
  return set | data::cache("numbers.cache") | data::sample_weight(weights);
#else
  return set | data::sample_weight(weights) | data::cache("numbers.cache");
#endif
}
