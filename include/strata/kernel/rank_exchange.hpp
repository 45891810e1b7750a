// The interface through which kernels of a divided layer exchange elements with the other ranks.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// Connects the ranks that divide the layers of a network. All make the same calls in the same order; each from one thread. A
/// call that moves elements returns when all of them have been moved, and its result is valid until the next call.
template <class T>
class rank_exchange {
 public:
  rank_exchange(int rank, int size) : rank_(rank), size_(size) {}
  rank_exchange(const rank_exchange&) = delete;
  rank_exchange& operator=(const rank_exchange&) = delete;
  virtual ~rank_exchange() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Sets whether messages between stages are in flight; calls do not wait for these to be sent.
  void set_between_stages(bool is) { is_between_stages_ = is; }

  /// Allocates room for `elements` of own() and of each other rank. All ranks pass the same number.
  virtual void reserve(long elements) = 0;
  /// The elements of this rank that the next call moves. Each call may change the address.
  virtual T* own() = 0;
  /// Gathers `elements` of each rank, in the order of ranks. If not `everyone`, only rank 0 receives them, and the result of the
  /// other ranks is undefined.
  virtual const T* gather(long elements, bool everyone = true) = 0;
  /// Sends piece r of own(), of `elements`, to rank r. Returns the pieces that this rank receives, in the order of ranks.
  virtual const T* swap(long elements) = 0;

  /// The element-wise sums of own() over all ranks, of `elements` elements. One rank adds each of them, in the order of ranks, so
  /// that all ranks have the same bits.
  const T* add_up(long elements) {
    const long piece = (elements + size_ * 16L - 1) / (size_ * 16L) * 16;
    const T* const pieces = swap(piece);
    T* const sums = own();
    for (long i = 0; i < piece; ++i) {
      T sum = pieces[i];
      for (int r = 1; r < size_; ++r) sum += pieces[r * piece + i];
      sums[i] = sum;
    }
    return gather(piece);
  }

 protected:
  bool is_between_stages_ = false;

 private:
  int rank_, size_;
};

}  // namespace strata::core
