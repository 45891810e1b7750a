// try and catch that a program without exceptions (-fno-exceptions) compiles, too. There the handlers are code that never runs,
// because throw_exception of base/error.hpp ends the program. Macros, because no function can stand for a handler that returns
// from the function around it. A handler names what it catches, as a reference to const:
//     STRATA_TRY { read(file); }
//     STRATA_CATCH(const error& failure) { return failure.what(); }
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

/// Initializes what a handler declares, in code that never runs.
struct nothing_caught {
  template <class Exception>
  operator const Exception&() const {
    std::abort();
  }
};

}  // namespace strata::detail
#endif
