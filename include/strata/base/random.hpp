// Counter-based random numbers: the value depends on (key, counter) only, not on the thread that computes it or the order.
#pragma once
#include <array>
#include <cstdint>
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
struct philox {
  std::uint64_t key = 0;

  using block = std::array<std::uint32_t, 4>;

  /// Four words for counter (high, low).
  constexpr block operator()(std::uint64_t low, std::uint64_t high = 0) const {
    std::uint32_t c0 = std::uint32_t(low), c1 = std::uint32_t(low >> 32), c2 = std::uint32_t(high),
                  c3 = std::uint32_t(high >> 32);
    std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0, b = std::uint64_t{0xCD9E8D57u} * c2;
      const std::uint32_t n0 = std::uint32_t(b >> 32) ^ c1 ^ k0, n2 = std::uint32_t(a >> 32) ^ c3 ^ k1;
      c0 = n0, c1 = std::uint32_t(b), c2 = n2, c3 = std::uint32_t(a);
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }

  /// An independent generator, e.g. for one layer.
  [[gnu::noinline]] constexpr philox fork(std::uint64_t stream) const {
    const block b = (*this)(stream, 0x666F726B);  // "fork"
    return {b[0] | std::uint64_t{b[1]} << 32};
  }

  /// Uniform in [0, 1) with 53 bits.
  [[gnu::noinline]] constexpr double uniform(std::uint64_t i, std::uint64_t high = 0) const {
    const block b = (*this)(i, high);
    return double((b[0] | std::uint64_t{b[1]} << 32) >> 11) * 0x1p-53;
  }
};

}  // namespace strata::core
