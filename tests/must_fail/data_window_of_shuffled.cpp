// error: data::window takes a random-access view: put it before shuffle, filter, repeat and shard
#include <strata/data/sources/range.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/window.hpp>
using namespace strata;

void check() {
#ifdef TWIN
  data::range(9) | data::window<2>() | data::shuffle(9);
#else
  data::window<2>(data::range(9) | data::shuffle(9));
#endif
}
