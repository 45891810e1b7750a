// How much shared memory a block has.
#pragma once
#include <cstddef>

namespace strata::machine {

/// As much as all GPUs allow from sm_80 on; those of data centers allow more.
inline constexpr long most_shared_bytes = 99 * 1024;

namespace detail {
/// What the launch of a kernel asks for, because it is more than a kernel may have by itself; else 0.
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
