// Definitions of rows.hpp.
#pragma once

namespace strata::stablehlo {

STRATA_FUNCTION tensor as_rows(tensor x) {
  std::int64_t size = 1;
  for (int i = 1; i < x.rank(); ++i) size *= x.extent(i);
  return reshape(x, {x.extent(0), size});
}
STRATA_FUNCTION tensor one_hot(tensor indices, std::int64_t classes, element of) {
  const tensor columns = iota(indices.in(), {element::i32, {indices.extent(0), classes}}, 1);
  return convert(compare("EQ", along_first_axes(indices, columns), columns), of);
}
STRATA_FUNCTION tensor position_of_largest(tensor x) {
  const tensor largest = reduce(reduction::maximum, x, {1}), columns = iota(x.in(), {element::i32, x.extents()}, 1);
  const tensor is_largest = compare("EQ", x, along_first_axes(largest, x));
  return reduce(reduction::minimum, select(is_largest, columns, filled(std::numeric_limits<std::int32_t>::max(), columns)), {1});
}

namespace detail {
STRATA_FUNCTION std::vector<traced> numbers_of_rows(tensor x) {
  std::vector<traced> out;
  for (std::int64_t i = 0; i < x.extent(1); ++i) out.push_back(reshape(slice(x, {0, i}, {x.extent(0), i + 1}), {x.extent(0)}));
  return out;
}
}  // namespace detail

}  // namespace strata::stablehlo
