// error: data::enumerate takes a view of samples or elements: put it before batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/enumerate.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::enumerate() | data::batch<2>;
#else
  data::enumerate(data::range(4) | data::batch<2>);
#endif
}
