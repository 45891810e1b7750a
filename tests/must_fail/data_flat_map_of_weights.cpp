// error: data::flat_map would lose the weights: put data::sample_weight after it
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/sample_weight.hpp>
using namespace strata;

void check() {
  const auto weighted = data::sample_weight([](auto) { return 0.5; });
  const auto parts = data::flat_map([weighted](auto) {
#ifdef TWIN
    return data::from_tensor_slices(std::vector{1, 2, 3});
#else
    return data::from_tensor_slices(std::vector{1, 2, 3}) | weighted;
#endif
  });
  data::range(4) | parts | weighted;
}
