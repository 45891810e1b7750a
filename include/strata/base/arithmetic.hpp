// What determines the bits of a training besides program, seed and data: the version of strata's arithmetic, and compiler flags.
#pragma once
#include <strata/base/text.hpp>
#include <string>

namespace strata::detail {

/// Incremented whenever a change of strata makes other bits of the same training, or changes messages between processes.
inline constexpr int arithmetic_version = 1;

/// "arithmetic 1 with fused multiply-add". It must be equal in processes that train together, and a snapshot contains that of its
/// build. With -ffast-math the bits depend on the compiler and the length of its vectors as well; with -fno-finite-math-only
/// after it, clang++ defines only __NO_MATH_ERRNO__.
[[gnu::cold]] inline std::string text_of_arithmetic() {
#if defined(__FMA__) || defined(__aarch64__)
  constexpr const char* fused = " with fused multiply-add";
#else
  constexpr const char* fused = " without fused multiply-add";
#endif
  std::string text = text_of({"arithmetic ", arithmetic_version, fused});
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    (defined(__clang__) && defined(__NO_MATH_ERRNO__) && !defined(__APPLE__))
#if defined(__AVX512F__)
  constexpr int bits = 512;
#elif defined(__AVX__)
  constexpr int bits = 256;
#else
  constexpr int bits = 128;
#endif
  text += text_of({" and -ffast-math of ", __VERSION__, " for ", bits, " bits"});
#endif
  return text;
}

/// The notice about a snapshot whose build had the arithmetic `theirs`; empty if this build has the same. It is not an error,
/// because a training must survive an update of strata.
[[gnu::cold]] inline std::string notice_of_arithmetic(const std::string& snapshot, const std::string& theirs) {
  const std::string here = text_of_arithmetic();
  if (theirs == here) return {};
  return text_of({snapshot, " was written by a build with ", theirs.empty() ? "unknown arithmetic" : theirs,
                  ", but this one has ", here, ": the training continues, but the bits will differ\n"});
}

}  // namespace strata::detail
