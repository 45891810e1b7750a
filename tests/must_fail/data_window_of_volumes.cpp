// error: data::window makes samples of shape .Size, S[.]+., which has at most four extents
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/window.hpp>
using namespace strata;
template <shape S>
auto x() {
  return data::from_tensor_slices(data::array<float, S>(std::vector<float>(32)));
}

void check() {
#ifdef TWIN
  x<shape{2, 2, 2}>() | data::window<2>();
#else
  data::window<2>(x<shape{2, 2, 2, 1}>());
#endif
}
