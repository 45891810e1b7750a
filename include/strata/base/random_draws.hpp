// Random integers below a bound, and a shuffle that draws them.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <strata/base/linkage.hpp>
#include <strata/base/random.hpp>
#include <utility>

namespace strata::detail {

/// Uniform integers, one after the other. They depend on (generator, epoch) only.
class random_draws {
 public:
  random_draws() = default;
  random_draws(philox generator, std::uint64_t epoch) : generator_(generator), epoch_(epoch) {}

  /// An unbiased integer in [0, bound): Lemire, "Fast random integer generation in an interval", 2019. bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{word()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t surplus = -bound % bound;  // 2^32 mod bound
      while (static_cast<std::uint32_t>(product) < surplus) product = std::uint64_t{word()} * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }
  /// Fisher-Yates, from the last element on.
  template <class Vector>
  void shuffle(Vector& v) {
    for (std::size_t left = v.size(); left > 1; --left) std::swap(v[left - 1], v[below(static_cast<std::uint32_t>(left))]);
  }

 private:
  static constexpr std::size_t blocks = 16;

  std::uint32_t word() {
    if (used_ == words_.size()) refill();
    return words_[used_++];
  }
  void refill();

  philox generator_;
  std::uint64_t epoch_ = 0, next_ = 0;
  std::array<std::uint32_t, 4 * blocks> words_{};
  std::size_t used_ = 4 * blocks;
};

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/base/random_draws.ipp>
#endif
