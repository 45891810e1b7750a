// Definitions of error.hpp.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace strata {

STRATA_FUNCTION void throw_error(std::initializer_list<detail::text_piece> pieces) {
  core::throw_exception(strata_error(pieces));
}
STRATA_FUNCTION void throw_error(const std::string& text) { core::throw_exception(strata_error(text)); }

#ifndef __cpp_exceptions
namespace detail {

inline void print_failure(const std::exception& failure) {
  std::fputs(text_of({"strata: ", failure.what(), "\n"}).c_str(), stderr);
}

inline std::atomic<error_handler> handler_of_errors{print_failure};

STRATA_FUNCTION void end_program(const std::exception& failure) {
  if (const error_handler handler = handler_of_errors.load()) handler(failure);
  std::abort();
}

}  // namespace detail

STRATA_FUNCTION error_handler set_error_handler(error_handler handler) { return detail::handler_of_errors.exchange(handler); }
#endif

}  // namespace strata
