// try and catch that also compile in a program without exceptions (-fno-exceptions). There the handlers never run, because
// throw_exception of base/error.hpp ends the program. They are macros, because a handler may return from the enclosing function.
// A handler takes what it catches by reference to const:
//     STRATA_TRY { read(file); }
//     STRATA_CATCH(const strata_error& failure) { return failure.what(); }
#pragma once
#include <cstdlib>

#ifdef __cpp_exceptions
#define STRATA_TRY try
#define STRATA_CATCH(declaration) catch (declaration)
#define STRATA_CATCH_ALL catch (...)
#define STRATA_THROW_AGAIN throw
#else
#define STRATA_TRY if (true)
#define STRATA_CATCH(declaration) else if ([[maybe_unused]] declaration = ::strata::detail::nothing_caught(); false)
#define STRATA_CATCH_ALL else
#define STRATA_THROW_AGAIN std::abort()

namespace strata::detail {

/// Initializes the variable of a handler, in code that never runs.
struct nothing_caught {
  template <class Exception>
  operator const Exception&() const {
    std::abort();
  }
};

}  // namespace strata::detail
#endif
