// error: data::tag takes a view of samples, elements or batches
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/tag.hpp>
#include <vector>
using namespace strata;

void check(std::vector<float> numbers) {
#ifdef TWIN
  data::from_tensor_slices(numbers) | data::tag("all");
#else
  numbers | data::tag("all");
#endif
}
