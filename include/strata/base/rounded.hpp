// Keeps compilers from fusing a product with the sum that it is added to.
#pragma once
#include <strata/base/link_checks.hpp>
#include <type_traits>

namespace strata::detail {

/// v, rounded to its type. Compilers fuse `a * b + c` into one operation in some places and not in others, so the bits would
/// depend on compiler, flags and target; `rounded(a * b) + c` is never fused.
template <class T>
constexpr T rounded(T v) {
  if constexpr (std::is_class_v<T>) {  // an arithmetic type that records operations
    return v;
  } else if (!__builtin_is_constant_evaluated()) {
#if defined(__CUDA_ARCH__)  // adds -0 with an explicit rounding mode, which ptxas does not fuse
    if constexpr (sizeof(T) == sizeof(float))
      asm("add.rn.f32 %0, %0, 0f80000000;" : "+f"(v));
    else
      asm("add.rn.f64 %0, %0, 0d8000000000000000;" : "+d"(v));
#elif defined(__AVX512F__)
    asm("" : "+v"(v));
#elif defined(__SSE2__)
    asm("" : "+x"(v));
#elif defined(__aarch64__)
    asm("" : "+w"(v));
#else
    volatile T stored = v;
    v = stored;
#endif
  }
  return v;
}

}  // namespace strata::detail
