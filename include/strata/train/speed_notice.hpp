// The notice that fit prints, once per program, if its kernels use less than the instructions of this machine.
#pragma once
#include <atomic>
#include <string_view>

namespace strata::detail {

/// The text of the notice; empty if there is none.
constexpr std::string_view notice_of_speed(bool optimized, bool for_avx2, bool machine_has_avx2) {
  if (!optimized)
    return "strata: compiled without optimization, training takes 15 to 70 times as long as with -O3 -march=native; with -Og 5 "
           "times (-DSTRATA_NO_SPEED_NOTICE turns this line off)";
  if (!for_avx2 && machine_has_avx2)
    return "strata: compiled for processors without AVX2 and FMA, training takes some 4 times as long as with -march=native here "
           "(-DSTRATA_NO_SPEED_NOTICE turns this line off)";
  return {};
}

#if defined(__x86_64__)
inline bool machine_has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
inline bool machine_has_avx2() { return false; }
#endif

/// The notice of the calling file. Template arguments, because files of a program may be compiled with different flags.
template <bool Optimized =
#if defined(__OPTIMIZE__) || defined(STRATA_NO_SPEED_NOTICE)
              true,
#else
              false,
#endif
          bool ForAvx2 =
#if (defined(__AVX2__) && defined(__FMA__)) || defined(STRATA_NO_SPEED_NOTICE)
              true
#else
              false
#endif
          >
std::string_view speed_notice() {
  return notice_of_speed(Optimized, ForAvx2, machine_has_avx2());
}

/// Returns true on the first call in this program.
inline bool is_first_notice() {
  static std::atomic<bool> was_given = false;
  return !was_given.exchange(true);
}

}  // namespace strata::detail
