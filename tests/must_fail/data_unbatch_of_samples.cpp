// error: data::unbatch takes a view of batches: put it after batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/unbatch.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::unbatch;
#else
  data::range(4) | data::unbatch;
#endif
}
