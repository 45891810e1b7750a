// What is said to a program that reads parameters while each process has a part of them.
#pragma once
#include <strata/base/error.hpp>

namespace strata::detail {

/// Throws strata::error. by: what divides them, such as `zero<3>`.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_divided_parameters(const char* by) {
  throw_error(
      {by,
       ": a process has a part of the parameters from each step to the end of the epoch. A callback reads them at the end "
       "of an epoch; in a loop of your own, call finish() of the executor in all processes first"});
}

}  // namespace strata::detail
