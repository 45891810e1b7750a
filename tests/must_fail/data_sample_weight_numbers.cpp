// error: data::sample_weight takes a vector or span of float, a number for each sample, or a function of x, or of x and y
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/sample_weight.hpp>
using namespace strata;

auto weighted() {
  auto set = data::from_tensor_slices(std::vector{1, 2, 3});
#ifdef TWIN
  return set | data::sample_weight(std::vector{1.0f, 2.0f, 0.5f});
#else
  return set | data::sample_weight(0.5);
#endif
}
