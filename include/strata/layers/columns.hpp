// columns<First, Count>: some columns of the data, for a branch.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace reasons {
inline constexpr reason columns_begins_at_0_or_later_and_takes_at_least_one{
    "columns<First, Count> begins at column 0 or later and takes at least one column"};
inline constexpr reason columns_ends_beyond_the_last_column{"columns<First, Count> ends beyond the last column of its input"};
}  // namespace reasons

namespace core {
struct column_settings {
  int first, count;

  constexpr expected_shape output_shape(shape in) const {
    if (first < 0 || count < 1) return reasons::columns_begins_at_0_or_later_and_takes_at_least_one;
    if (first > in.last() || count > in.last() - first) return reasons::columns_ends_beyond_the_last_column;
    shape out = in;
    out[in.rank() - 1] = count;
    return out;
  }
};

/// in: (..., C)  out: (..., count)
template <column_settings S>
struct column_slice {
  static constexpr auto name = "column_slice";
  static constexpr operation_traits traits{.first_column = S.first};
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
};
}  // namespace core

/// The columns First to First + Count - 1 of the last axis, counted from 0. An embedding may read them, so that categories stand
/// beside numbers in one input: `concat<branch<columns<0, 3>, embedding<100, 8>, flatten>, branch<columns<3, 5>>>`.
/// in: (..., C)  out: (..., Count). Keras has no such layer; x[..., 3:8] of its functional API.
template <int First, int Count>
struct columns {
  static constexpr auto name = "columns", class_name = "Columns";
  using operations = core::type_list<core::column_slice<core::column_settings{.first = First, .count = Count}>>;
};

}  // namespace strata
