// Four neighbouring elements that a thread loads and stores at once.
#pragma once
#include <strata/cuda/machine/machine.hpp>

namespace strata::machine {

/// Aligned as a whole, so that it is one access to memory.
template <class T>
struct alignas(4 * sizeof(T)) four {
  T at[4];
};

/// from[i] to from[i + 3]; their address is a multiple of the size of all four.
template <class T>
STRATA_DEVICE four<T> load_four(const T* from, long i) {
  return *reinterpret_cast<const four<T>*>(from + i);
}
template <class T>
STRATA_DEVICE void store_four(T* to, long i, const four<T>& values) {
  *reinterpret_cast<four<T>*>(to + i) = values;
}

}  // namespace strata::machine
