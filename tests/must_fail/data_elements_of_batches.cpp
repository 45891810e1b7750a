// error: data::elements takes a view of samples or elements: data::unbatch makes samples of batches
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/unbatch.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(4) | data::batch<2> | data::unbatch | data::elements;
#else
  data::range(4) | data::batch<2> | data::elements;
#endif
}
