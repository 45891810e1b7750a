// error: data::concatenate takes two views whose samples have one shape, one kind of labels and one target shape
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/concatenate.hpp>
using namespace strata;
template <int N>
auto x() {
  return data::from_tensor_slices(data::array<float, shape{N}>(std::vector<float>(6)));
}

void check() {
#ifdef TWIN
  data::concatenate(x<3>(), x<3>());
#else
  data::concatenate(x<3>(), x<2>());
#endif
}
