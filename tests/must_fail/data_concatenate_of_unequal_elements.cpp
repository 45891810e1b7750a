// error: data::concatenate takes two views whose .*or whose elements have one type
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/concatenate.hpp>
using namespace strata;
auto names() { return data::from_range(std::vector<std::string>{"a"}); }

void check() {
#ifdef TWIN
  data::concatenate(names(), names());
#else
  data::concatenate(names(), data::range(2));
#endif
}
