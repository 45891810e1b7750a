// A typed view of a few elements of an arena: the shape is in the type, the data is a pointer.
#pragma once
#include <concepts>
#include <strata/base/shape.hpp>

namespace strata {

template <class T, shape S>
struct tensor {
  T* data;
  static constexpr shape extents = S;

  constexpr T& operator()(std::same_as<int> auto... index) const {
    static_assert(sizeof...(index) == S.rank(), "one index per extent");
    int at = 0, axis = 0;
    ((at = at * S[axis++] + index), ...);
    return data[at];
  }
};

}  // namespace strata
