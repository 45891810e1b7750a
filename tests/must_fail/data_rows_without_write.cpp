// error: rows of samples need write.i, ahead, place, then., which writes sample i into a batch
#include <strata/data/core/rows.hpp>  // first: a shorter message
//
#include <strata/data/core/indexed_view.hpp>
using namespace strata;

/// Rows of one number each.
struct counting_rows {
  using value_type = float;
  static constexpr data::row_properties properties{};
  static constexpr shape sample_shape{1}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  std::size_t size() const { return 3; }
#ifdef TWIN
  template <class T, class Then>
  void write(data::sample_index i, data::sample_index, data::sample_place<T> to, Then then) const {
    *to.x = then(T(i.row));
  }
#endif
};

void check() { data::indexed_view("counting", counting_rows{}); }
