// The exchange of the ranks that divide layers, over a communicator.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/concepts/communicator.hpp>
#include <strata/kernel/rank_exchange.hpp>
#include <utility>

namespace strata::core {

/// Member r of the communicator is rank r. Throws communication_error as it does.
/// Between stages an exchange waits only for what it receives. Then a rank writes the next exchange to other memory: when it has
/// the messages of that one, the others have taken those of this one.
template <class T, communicator C>
class exchange_over final : public rank_exchange<T> {
  C processes_;
  const char* what_;
  bool has_stages_;
  int next_ = 0;  // which memory own() is
  long room_ = 0;
  typename C::memory own_[2]{}, all_{};

 public:
  using rank_exchange<T>::rank, rank_exchange<T>::size;

  /// what: a string literal that names the awaited messages in errors. has_stages: set_between_stages will be called.
  explicit exchange_over(C processes, const char* what = "the parts of divided layers", bool has_stages = false)
      : rank_exchange<T>(processes.rank(), processes.size()),
        processes_(std::move(processes)),
        what_(what),
        has_stages_(has_stages) {}

  /// The elements that reserve(room) allocates; with shares_memory, also those of others that this rank reads in place.
  static constexpr long elements(long room, int ranks, bool has_stages, bool shares_memory) {
    return (room + 16L * ranks) * ((has_stages ? 2 : 1) + ranks + (shares_memory ? ranks - 1 : 0));
  }
  void reserve(long elements) override {
    elements += 16L * size();  // see add_up
    if (elements <= room_) return;
    own_[0] = processes_.allocate(bytes(elements));
    if (has_stages_) own_[1] = processes_.allocate(bytes(elements));
    all_ = processes_.allocate(bytes(elements * size()));
    room_ = elements;
  }
  T* own() override { return numbers_in<T>(own_[next_]); }

  const T* gather(long elements, bool everyone) override {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      if (everyone || rank() == 0) processes_.receive(all_, bytes(r * elements), bytes(elements), r);
      if (everyone || r == 0) processes_.send(own_[next_], 0, bytes(elements), r);
    }
    return complete(0, elements, everyone);
  }
  const T* swap(long elements) override {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      processes_.receive(all_, bytes(r * elements), bytes(elements), r);
      processes_.send(own_[next_], bytes(r * elements), bytes(elements), r);
    }
    return complete(rank() * elements, elements, true);
  }

 private:
  static std::size_t bytes(long elements) { return std::size_t(elements) * sizeof(T); }
  /// Copies this rank's own part to the result and waits. from_all: each rank receives from all others.
  const T* complete(long from, long elements, bool from_all) {
    T* const all = numbers_in<T>(all_);
    std::copy_n(own() + from, elements, all + rank() * elements);
    if (this->is_between_stages_ && from_all) {
      processes_.wait_received(what_, processes_.begun());
      next_ = 1 - next_;
    } else {
      processes_.wait(what_);
    }
    return all;
  }
};

}  // namespace strata::core
