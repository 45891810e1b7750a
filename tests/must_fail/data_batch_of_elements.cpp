// error: elements before data::batch are samples
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <string>
using namespace strata;

auto batches() {
  auto words = data::from_range(std::vector<std::string>{"a", "to"});
#ifdef TWIN
  return words | data::map([](const std::string& word) { return float(word.size()); }) | data::batch<2>;
#else
  return words | data::batch<2>;
#endif
}
