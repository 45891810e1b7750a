// Fuses a product with the sum that it is added to.
#pragma once
#include <strata/base/link_checks.hpp>

namespace strata::detail {

/// a * b + c, rounded once wherever the target has fused operations. Compilers fuse the expression in some places and not in
/// others, so its bits would depend on compiler and flags. Vectors have simd::multiply_add; detail::rounded forbids the fusion.
inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace strata::detail
