// error: rows of elements need visit.i, f., which calls f with element i
#include <strata/data/core/rows.hpp>  // first: a shorter message
//
#include <strata/data/core/indexed_view.hpp>
using namespace strata;

/// Rows of strings.
struct name_rows {
  using element = std::string;
  static constexpr data::row_properties properties{};
  std::size_t size() const { return 3; }
#ifdef TWIN
  template <class F>
  decltype(auto) visit(data::sample_index i, F&& f) const {
    return f(std::to_string(i.row));
  }
#endif
};

void check() { data::indexed_view("names", name_rows{}); }
