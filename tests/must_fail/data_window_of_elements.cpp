// error: data::window takes a view of samples: put it before batch, and after the map that makes samples
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/window.hpp>
using namespace strata;
auto names() { return data::from_range(std::vector<std::string>{"a"}); }

void check() {
#ifdef TWIN
  names() | data::map([](const std::string& s) { return int(s.size()); }) | data::window<1>();
#else
  data::window<1>(names());
#endif
}
