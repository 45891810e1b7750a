// error: the function of data::interleave takes an element, or x and y of samples with labels, and returns a range of elements
#include <strata/data/sources/range.hpp>
#include <strata/data/views/interleave.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::interleave([](auto i) { return data::range(i + 1); });
#else
  data::interleave(data::range(4), [](auto i, int) { return data::range(i + 1); });
#endif
}
