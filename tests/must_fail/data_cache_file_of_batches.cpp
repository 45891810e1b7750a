// error: a cache file holds samples: put data::cache\(path\) before batch, and after a data::map that makes them
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::cache();
#else
  data::range(4) | data::batch<2> | data::cache("batches.cache");
#endif
}
