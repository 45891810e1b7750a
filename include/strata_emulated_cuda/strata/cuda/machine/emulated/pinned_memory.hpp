// Memory of the host that devices read by themselves.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <strata/cuda/machine/emulated/capture_rules.hpp>

namespace strata::machine {

/// Memory of the host that devices read by themselves, while the program goes on: copy_pinned_to_device copies from it. Copies
/// of an object are the same memory.
class pinned_memory {
  struct release {
    void operator()(std::byte* data) const noexcept {
      detail::spoil_capture("pinned memory is released");
      delete[] data;
    }
  };
  std::shared_ptr<std::byte[]> data_;
  std::size_t size_ = 0;

 public:
  /// Makes an object without memory.
  pinned_memory() = default;
  /// Allocates `size` bytes and fills them with garbage, as those of cudaHostAlloc may have any values. Throws std::bad_alloc,
  /// and strata_error if the calling thread captures a queue. If it captures one when the last copy is destroyed, the
  /// capture fails.
  explicit pinned_memory(std::size_t size) : size_(size) {
    detail::refuse_while_captured("pinned memory is allocated");
    data_ = {new std::byte[size], release{}};
    std::memset(data_.get(), 0xcd, size);
  }
  /// The address of the first byte.
  std::byte* data() { return data_.get(); }
  /// The number of bytes.
  std::size_t size() const { return size_; }
};

}  // namespace strata::machine
