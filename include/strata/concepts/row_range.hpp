// A range of rows of a batch.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// Rows [begin, end) of a batch.
struct row_range {
  int begin = 0, end = 0;
};

}  // namespace strata::core
