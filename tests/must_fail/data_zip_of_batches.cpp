// error: data::zip takes two views of samples or elements: put it before batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/zip.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::zip(data::range(4), data::range(4));
#else
  data::zip(data::range(4), data::range(4) | data::batch<2>);
#endif
}
