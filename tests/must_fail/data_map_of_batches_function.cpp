// error: the function of data::map after data::batch takes a data::mutable_batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::map([](auto& b) { b.x(0)(0) = 1; });
#else
  data::map(data::range(4) | data::batch<2>, [](auto, int) {});
#endif
}
