// error: the function of data::map takes x, or x and y of samples with labels, or an element
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/map.hpp>
using namespace strata;

auto mapped() {
#ifdef TWIN
  const auto f = [](auto x, int) { return x(0); };
#else
  const auto f = [](auto x, int, int) { return x(0); };
#endif
  return data::map(data::from_tensor_slices(std::vector{1, 2, 3}, std::vector{0, 0, 1}), f);
}
