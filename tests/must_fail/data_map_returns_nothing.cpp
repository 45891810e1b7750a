// error: the function of data::map returns a sample or an element, but this one returns nothing
#include <strata/data/sources/range.hpp>
#include <strata/data/views/map.hpp>
using namespace strata;

auto check() {
#ifdef TWIN
  return data::range(4) | data::map([](auto x) { return x; });
#else
  return data::range(4) | data::map([](auto) {});
#endif
}
