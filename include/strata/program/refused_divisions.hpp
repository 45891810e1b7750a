// Errors for a program whose processes divide a network, or read different batches.
#pragma once
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/program/executor.hpp>

namespace strata::detail {

/// Throws divided_parameters. by: what divides them, such as `zero<3>`.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_divided_parameters(const char* by) {
  throw_exception(core::divided_parameters(
      {by,
       ": a process has a part of the parameters from each step to the end of the epoch. A callback reads them at the end "
       "of an epoch; in a loop of your own, call finish() of the executor in all processes first"}));
}

/// Throws strata_error. here, there: the samples of the batches of this process and of another one.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_other_batch(long here, std::size_t process, long there) {
  throw_error(
      {"the processes do not read the same batches: one of ", here, " samples here, one of ", there, " in process ", process});
}

/// Throws strata_error. here: the samples of the batch of this process. computed: those that all processes together have
/// computed.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_other_batches(long here, long computed) {
  throw_error({"the processes do not read the same batches: one of ", here,
               " samples here, of which all processes together have computed ", computed});
}

}  // namespace strata::detail
