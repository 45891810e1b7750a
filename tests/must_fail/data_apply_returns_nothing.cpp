// error: the function of data::apply returns a view, but this one returns nothing
#include <strata/data/sources/range.hpp>
#include <strata/data/views/apply.hpp>
#include <strata/data/views/take.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::apply([](auto view) { return view | data::take(1); });
#else
  data::range(4) | data::apply([](auto view) { view | data::take(1); });
#endif
}
