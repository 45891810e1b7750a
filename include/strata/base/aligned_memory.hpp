// Memory that is aligned for every vector unit, in huge pages where it is large.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <strata/base/linkage.hpp>
#include <type_traits>
#include <utility>

namespace strata::detail {

/// Bytes at a multiple of 64, not initialised. The class is untyped, so that it is compiled once for arrays of all types. Above 1
/// MB it requests pages of 2 MB, so that passes over the memory and random accesses miss the TLB less often.
class aligned_memory {
  void* begin_ = nullptr;
  std::align_val_t alignment_{64};

 public:
  aligned_memory() = default;
  explicit aligned_memory(std::size_t bytes);
  aligned_memory(aligned_memory&& from) noexcept : begin_(std::exchange(from.begin_, nullptr)), alignment_(from.alignment_) {}
  aligned_memory& operator=(aligned_memory&& from) noexcept {  // leaves `from` empty
    aligned_memory old(std::move(*this));
    std::swap(begin_, from.begin_);
    std::swap(alignment_, from.alignment_);
    return *this;
  }
  ~aligned_memory() {
    if (begin_) release();
  }

  void* begin() const { return begin_; }

 private:
  void release();
};

/// n values of T, shared and freed with the last copy.
template <class T>
  requires std::is_trivially_copyable_v<T>
std::shared_ptr<T> allocate_shared_aligned(std::size_t n) {
  auto memory = std::make_shared<aligned_memory>(n * sizeof(T));
  T* const first = static_cast<T*>(memory->begin());
  return {std::move(memory), first};
}

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/base/aligned_memory.ipp>
#endif
