// Random tokens that distinguish processes and cannot be guessed.
#pragma once
#include <cstdint>
#include <random>

namespace strata::detail {

inline std::uint64_t random_token() {
  std::random_device random;
  return std::uint64_t(random()) << 32 | random();
}

}  // namespace strata::detail
