// error: data::interleave takes a view of samples or elements: put it before batch
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/interleave.hpp>
using namespace strata;
constexpr auto some = [](auto) { return data::range(3); };

void check() {
#ifdef TWIN
  data::range(4) | data::interleave(some) | data::batch<2>;
#else
  data::interleave(data::range(4) | data::batch<2>, some);
#endif
}
