// The memory of an emulated device: an address range of this process that is closed to the host.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <new>
#include <strata/cuda/machine/emulated/touched_pages.hpp>

namespace strata::machine::detail {

/// The memory of one device. Its addresses may be read and written only while a kernel or a copy runs (see protect), so that
/// host code which follows such an address crashes. All sizes are in bytes.
class device_memory {
  std::byte* begin_;
  std::size_t capacity_, free_;
  std::map<std::size_t, std::size_t> holes_;      // free ranges: offset from begin_ -> size
  std::map<const void*, std::size_t> allocated_;  // address -> the size that was asked for
  std::size_t alignment_ = 256;
  /// The size of the range that an allocation of `bytes` bytes takes: a multiple of the alignment, and not 0.
  std::size_t taken_for(std::size_t bytes) const {
    return (std::max<std::size_t>(bytes, 1) + alignment_ - 1) / alignment_ * alignment_;
  }

 public:
  /// Reserves `capacity` bytes of addresses, which are closed. Throws std::bad_alloc if the system refuses.
  explicit device_memory(std::size_t capacity) : capacity_(capacity), free_(capacity), holes_{{0, capacity}} {
    void* const at = ::mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(at);
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { ::munmap(begin_, capacity_); }

  std::byte* begin() const { return begin_; }
  /// Makes each later allocation begin at a page, so that no two arrays share a page.
  void begin_arrays_at_pages() { alignment_ = touched_pages::page; }
  /// The number of bytes that are not allocated. They may lie in several ranges.
  std::size_t free() const { return free_; }
  std::size_t capacity() const { return capacity_; }
  /// Whether anything is allocated.
  bool is_used() const { return !allocated_.empty(); }
  /// Closes the memory to all reads and writes, or opens it.
  void protect(bool closed) { ::mprotect(begin_, capacity_, closed ? PROT_NONE : PROT_READ | PROT_WRITE); }

  /// Whether the `bytes` bytes at `from` lie within one allocation.
  bool holds(const void* from, std::size_t bytes) const {
    auto next = allocated_.upper_bound(from);
    if (next == allocated_.begin()) return false;
    --next;
    return std::size_t(static_cast<const std::byte*>(from) - static_cast<const std::byte*>(next->first)) + bytes <= next->second;
  }
  /// Returns the address of `bytes` bytes that are not zeroed, or null if no free range is large enough.
  void* allocate(std::size_t bytes) {
    if (bytes > capacity_) return nullptr;  // also where the sum in taken_for would overflow
    const std::size_t size = taken_for(bytes);
    const auto hole = std::ranges::find_if(holes_, [&](const auto& each) { return each.second >= size; });
    if (hole == holes_.end()) return nullptr;
    const auto [offset, room] = *hole;
    holes_.erase(hole);
    if (room > size) holes_[offset + size] = room - size;
    free_ -= size;
    allocated_[begin_ + offset] = bytes;
    return begin_ + offset;
  }
  /// Frees what allocate returned. Aborts the program for any other address.
  void release(const void* memory) {
    const auto found = allocated_.find(memory);
    if (found == allocated_.end()) std::abort();
    std::size_t offset = std::size_t(static_cast<const std::byte*>(memory) - begin_), size = taken_for(found->second);
    free_ += size;
    allocated_.erase(found);
    if (const auto next = holes_.find(offset + size); next != holes_.end()) size += next->second, holes_.erase(next);
    if (auto before = holes_.lower_bound(offset); before != holes_.begin())
      if (--before; before->first + before->second == offset) offset = before->first, size += before->second;
    holes_[offset] = size;
  }
};

}  // namespace strata::machine::detail
