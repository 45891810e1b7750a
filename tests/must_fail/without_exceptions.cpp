// Without exceptions.
// flags: -fno-exceptions
#include <strata/data.hpp>

// case: ignore_errors_without_exceptions
// error: data::ignore_errors catches exceptions, but this program is compiled without them
using namespace strata;

auto digits() {
#ifdef TWIN
  return data::synthetic_digits(10);
#else
  return data::synthetic_digits(10) | data::ignore_errors;
#endif
}
