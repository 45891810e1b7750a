// The amount of shared memory of a block.
#pragma once
#include <cstddef>

namespace strata::machine {

/// The amount that all GPUs from sm_80 on allow; those of data centers allow more.
inline constexpr long most_shared_bytes = 99 * 1024;

namespace detail {
/// The dynamic shared memory that the launch of a kernel requests, if it exceeds the static limit; else 0.
template <class Code>
constexpr std::size_t dynamic_shared_bytes() {
  if constexpr (requires { typename Code::shared; }) {
    static_assert(sizeof(typename Code::shared) <= most_shared_bytes);
    return sizeof(typename Code::shared) > 48 * 1024 ? sizeof(typename Code::shared) : 0;
  } else {
    return 0;
  }
}
}  // namespace detail

}  // namespace strata::machine
