// error: data::split_dataset takes a view with random access: put it right after the data, before shuffle
#include <strata/data/sources/range.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/split_dataset.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::split_dataset(data::range(4), {.left_size = 2});
#else
  data::split_dataset(data::range(4) | data::shuffle(4), {.left_size = 2});
#endif
}
