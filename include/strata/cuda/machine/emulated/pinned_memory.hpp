// Memory of the host that devices read by themselves.
#pragma once
#include <cstddef>
#include <vector>

namespace strata::machine {

/// Memory of the host that devices read by themselves, while the program goes on: copy_pinned_to_device copies from it.
class pinned_memory {
  std::vector<std::byte> bytes_;

 public:
  pinned_memory() = default;
  /// Allocates `size` bytes. Throws std::bad_alloc.
  explicit pinned_memory(std::size_t size) : bytes_(size) {}
  /// The address of the first byte.
  std::byte* data() { return bytes_.data(); }
  /// The number of bytes.
  std::size_t size() const { return bytes_.size(); }
};

}  // namespace strata::machine
