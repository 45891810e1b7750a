// Weights and other arrays of a training, by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strata {

struct named_array {
  std::string name;  // dense/kernel
  std::vector<std::uint64_t> extents;
  std::span<std::byte> bytes;  // of float or double
};

}  // namespace strata
