// error: the function of data::apply takes the view before it
#include <strata/data/sources/range.hpp>
#include <strata/data/views/apply.hpp>
#include <strata/data/views/take.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::apply([](auto view) { return view | data::take(1); });
#else
  data::range(4) | data::apply([](int) {});
#endif
}
