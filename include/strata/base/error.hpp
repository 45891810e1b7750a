// The one exception type for bad input: its text names the file, layer, rank or value.
#pragma once
#include <stdexcept>

namespace strata {

struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace strata
