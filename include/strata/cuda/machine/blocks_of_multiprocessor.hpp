// The number of blocks of a kernel for which a multiprocessor has room.
#pragma once

namespace strata::machine::detail {

/// The least number of them: Code::blocks_of_multiprocessor. It is 1 for most kernels, so that the compiler need not limit their
/// registers, which would make them spill.
template <class Code>
constexpr int least_blocks() {
  if constexpr (requires { Code::blocks_of_multiprocessor; })
    return Code::blocks_of_multiprocessor;
  else
    return 1;
}

}  // namespace strata::machine::detail
