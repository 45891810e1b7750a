// The peak of one core of this machine, measured in the process that compares with it.
#pragma once
#include <strata/base/aligned_memory.hpp>
#include <strata/cpu/simd/simd.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "support/options.hpp"

namespace strata::bench {

inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Seconds of one call: the fastest of `tries`, because other programs may use the machine.
template <class F>
double best_time(int tries, int calls, F&& f) {
  if (smoke_test) tries = calls = 1;
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = now();
    for (int k = 0; k < calls; ++k) f();
    best = std::min(best, (now() - start) / calls);
  }
  return best;
}

/// Independent FMA chains, enough for a latency of four cycles on two units.
[[gnu::noinline]] inline float fma_chains(int rounds) {
  constexpr int chains = 12;
  simd::vec<float> sum[chains], x = simd::broadcast(1.0001f), y = simd::broadcast(0.9999f), total{};
  simd::keep(x);
  simd::keep(y);
  simd::unroll<chains>([&](auto c) STRATA_INLINE { sum[c] = simd::broadcast(float(c)); });
  for (int k = 0; k < rounds; ++k)
    simd::unroll<chains>([&](auto c) STRATA_INLINE {
      sum[c] = sum[c] * x + y;
      simd::keep(sum[c]);
    });
  simd::unroll<chains>([&](auto c) STRATA_INLINE { total += sum[c]; });
  return total[0];
}

/// FLOP per second of one core, in float.
inline double fma_peak() {
  static const double value = [] {
    constexpr int rounds = 20'000;
    [[maybe_unused]] volatile float sink = 0;
    return 2. * rounds * 12 * simd::lanes<float> / best_time(200, 1, [&] { sink = fma_chains(rounds); });
  }();
  return value;
}

/// An array aligned to 64 bytes.
template <class T>
auto aligned_array(std::size_t n) {
  auto array = detail::allocate_shared_aligned<T>(n + 16);
  std::memset(static_cast<void*>(array.get()), 0, sizeof(T) * (n + 16));
  return std::shared_ptr<T[]>(array, array.get());
}

}  // namespace strata::bench
