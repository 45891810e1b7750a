// Memory of the host that devices read by themselves.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>

namespace strata::machine {

/// Memory of the host that devices read by themselves, while the program goes on: copy_pinned_to_device copies from it. Copies
/// of an object are the same memory.
class pinned_memory {
  std::shared_ptr<std::byte[]> data_;
  std::size_t size_ = 0;

 public:
  pinned_memory() = default;
  /// Allocates `size` bytes and fills them with garbage, as those of cudaHostAlloc may have any values. Throws std::bad_alloc.
  explicit pinned_memory(std::size_t size) : data_(new std::byte[size]), size_(size) { std::memset(data_.get(), 0xcd, size); }
  /// The address of the first byte.
  std::byte* data() { return data_.get(); }
  /// The number of bytes.
  std::size_t size() const { return size_; }
};

}  // namespace strata::machine
