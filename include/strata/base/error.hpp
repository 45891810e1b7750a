// The one exception type for bad input: its text names the file, layer, rank or value.
#pragma once
#include <initializer_list>
#include <stdexcept>
#include <strata/base/text.hpp>

namespace strata {

struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// Of pieces: error({path, ": expected ", expected, " bytes, got ", got}).
  [[gnu::cold, gnu::noinline]] error(std::initializer_list<detail::text_piece> pieces)
      : std::runtime_error(detail::text_of(pieces)) {}
};

}  // namespace strata
