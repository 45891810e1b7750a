// residual<items...>: layers with a short cut around them.
#pragma once
#include <strata/layers/add.hpp>

namespace strata {

/// Items... plus their input (He et al., "Deep residual learning", 2016). It is named `add` in errors and in the summary.
template <class... Items>
using residual = add<branch<Items...>, branch<>>;

}  // namespace strata
