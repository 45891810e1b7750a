// error: data::take takes a view of samples, elements or batches
#include <strata/data/sources/range.hpp>
#include <strata/data/views/take.hpp>
#include <vector>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::take(2);
#else
  data::take(std::vector<int>(4), 2);
#endif
}
