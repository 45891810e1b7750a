// The slots of an optimizer for a whole network, collected from processes that keep those of their slices.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/zero/process_slices.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <vector>

namespace strata::core {

/// The slots of an optimizer for all parameters, one after the other, where each process keeps those of its slices. There is
/// memory for them from of_all() or collect() until forget() or keep().
template <class T>
class collected_slots {
  arena<T> values_;
  long elements_ = 0;  // of the trained parameters
  int slots_ = 0;

 public:
  collected_slots() = default;
  collected_slots(long elements, int slots) : elements_(elements), slots_(slots) {}

  std::span<T> of_all() {
    values_.grow(std::size_t(elements_) * std::size_t(slots_));
    return values_.span();
  }
  void forget() { values_ = {}; }

  /// All processes call it. own: the slots of this one's slices. The chief gets those of all, or all processes do.
  template <communicator C>
  void collect(C& c, process_slices<T, C>& slices, std::span<const T> own, bool in_all) {
    const bool gets = in_all || c.rank() == 0;
    for (int k = 0; k < slots_; ++k)
      slices.share(
          c, "slots", gets ? of_all().data() + k * elements_ : nullptr,
          [&](const arena_slice& s) { return own.data() + k * elements_of(slices.own(c)) + s.at; }, !in_all);
  }
  /// Writes changes of of_all() back to this process's slots.
  void keep(const std::vector<arena_slice>& slices, std::span<T> own) {
    if (values_.size() == 0) return;
    for (int k = 0; k < slots_; ++k)
      for (const arena_slice& s : slices)
        std::copy_n(values_.data() + k * elements_ + s.begin, s.size(), own.data() + k * elements_of(slices) + s.at);
    forget();
  }
};

}  // namespace strata::core
