// What kernels of a divided layer use to reach the other ranks.
#pragma once

namespace strata {

/// The ranks that divide the layers of a network. All make the same calls in the same order; each from one thread. A call that
/// moves elements returns when it is done with all of them, and its result is valid until the next call.
template <class T>
class rank_exchange {
 public:
  rank_exchange(int rank, int size) : rank_(rank), size_(size) {}
  rank_exchange(const rank_exchange&) = delete;
  rank_exchange& operator=(const rank_exchange&) = delete;
  virtual ~rank_exchange() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Whether messages between stages are on the way, for which a call does not wait. When they have arrived, so have the others.
  void set_between_stages(bool is) { is_between_stages_ = is; }

  /// Makes room for `elements` of own(), and of each other rank. Allocates; all ranks pass the same number.
  virtual void reserve(long elements) = 0;
  /// The elements of this rank that the next call moves. That call may change where they are.
  virtual T* own() = 0;
  /// `elements` of each rank, in the order of ranks. If not `everyone`, only
  /// rank 0 gets them, and the result of the other ranks is undefined.
  virtual const T* gather(long elements, bool everyone = true) = 0;
  /// Piece r of own(), of `elements`, goes to rank r. Returns the pieces that this rank gets, in the order of ranks.
  virtual const T* swap(long elements) = 0;

  /// The sums of own() over all ranks, `elements` of them. Each is added in the order of ranks by one rank, so it has the same
  /// bits in all of them.
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

}  // namespace strata
