// Memory of the host that devices read by themselves.
#pragma once
#include <cstddef>
#include <vector>

namespace strata::machine {

/// Memory of the host that devices read by themselves, while the program goes on.
class pinned_memory {
  std::vector<std::byte> bytes_;

 public:
  pinned_memory() = default;
  explicit pinned_memory(std::size_t size) : bytes_(size) {}
  std::byte* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
};

}  // namespace strata::machine
