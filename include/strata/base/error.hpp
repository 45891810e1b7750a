// The one exception type for bad input: its text names the file, layer, rank or value. Functions throw it with and without
// exceptions. All files of a program are compiled with exceptions, or all without: inline functions differ.
#pragma once
#include <initializer_list>
#include <stdexcept>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <string>

#if defined(STRATA_COMPILED) && !defined(__cpp_exceptions)
#error "strata's compiled library throws exceptions: without them (-fno-exceptions), use strata's headers alone"
#endif

// With finite math only, std::isnan returns false for every number: a training could end in nan without an error.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "strata needs nan and infinity: add -fno-finite-math-only after -ffast-math or -Ofast"
#endif

namespace strata {

/// Escapes control characters and NUL in its text, so that none that it quotes reaches a terminal or ends it.
struct strata_error : std::runtime_error {
  [[gnu::cold, gnu::noinline]] explicit strata_error(const std::string& text) : std::runtime_error(detail::visible(text, true)) {}
  /// Joins pieces: strata_error({path, ": expected ", expected, " bytes, got ", got}).
  [[gnu::cold, gnu::noinline]] strata_error(std::initializer_list<detail::text_piece> pieces)
      : strata_error(detail::text_of(pieces)) {}
};

#ifndef __cpp_exceptions
/// The handler of failures in a program without exceptions. The program is aborted when it returns.
using error_handler = void (*)(const std::exception& failure);

/// Sets the handler for all threads, and returns the previous one. The default prints the failure's text to standard error. Only
/// for programs compiled with -fno-exceptions.
error_handler set_error_handler(error_handler handler);

namespace detail {
[[noreturn]] void end_program(const std::exception& failure);
}
#endif

namespace core {
/// Throws the failure. Without exceptions, calls the handler and aborts the program.
template <class Failure>
[[noreturn, gnu::cold, gnu::noinline]] void throw_exception(const Failure& failure) {
#ifdef __cpp_exceptions
  throw failure;
#else
  detail::end_program(failure);
#endif
}
}  // namespace core

/// Throws an error of pieces: throw_error({path, ": expected ", expected, " bytes, got ", got}).
[[noreturn, gnu::cold]] void throw_error(std::initializer_list<detail::text_piece> pieces);
[[noreturn, gnu::cold]] void throw_error(const std::string& text);

}  // namespace strata

#if STRATA_DEFINES
#include <strata/base/error.ipp>
#endif
