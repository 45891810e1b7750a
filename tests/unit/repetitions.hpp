// Fewer repetitions under a sanitizer, which makes a test ten times as long and finds its faults in the first of them.
#pragma once

namespace strata::test {

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRATA_TEST_IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRATA_TEST_IS_SANITIZED
#endif
#ifdef STRATA_TEST_IS_SANITIZED
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

/// A number of repetitions, of samples or of elements.
constexpr int repetitions(int usual, int under_a_sanitizer) { return is_sanitized ? under_a_sanitizer : usual; }

}  // namespace strata::test
