// error: data::unbatch takes batches that can be copied: put data::prefetch after the last batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/unbatch.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::unbatch | data::batch<4> | data::prefetch();
#else
  data::range(4) | data::batch<2> | data::prefetch() | data::unbatch;
#endif
}
