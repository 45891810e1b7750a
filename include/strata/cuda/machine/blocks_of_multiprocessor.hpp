// How many blocks of a kernel a multiprocessor has room for.
#pragma once

namespace strata::machine::detail {

/// At least so many: Code::blocks_of_multiprocessor. Most kernels ask for one, so that the compiler need not hold them to so few
/// registers that it spills.
template <class Code>
constexpr int least_blocks() {
  if constexpr (requires { Code::blocks_of_multiprocessor; })
    return Code::blocks_of_multiprocessor;
  else
    return 1;
}

}  // namespace strata::machine::detail
