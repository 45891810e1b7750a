// error: the function of data::flat_map takes an element, or x and y of samples with labels, and returns a range of elements
#include <strata/data/sources/range.hpp>
#include <strata/data/views/flat_map.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::flat_map([](auto i) { return data::range(i + 1); });
#else
  data::flat_map(data::range(4), [](auto i) { return i + 1; });
#endif
}
