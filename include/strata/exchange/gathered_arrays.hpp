// Collects arrays of a whole network, such as its parameters, from the parts of ranks, and cuts them into parts.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/kernel/rank_exchange.hpp>
#include <strata/network/layout.hpp>
#include <strata/network/rank_messages.hpp>
#include <strata/network/shard_places.hpp>
#include <strata/program/program.hpp>

namespace strata::detail {

/// Part: the program of a rank.
template <class Program, class Part>
class gathered_arrays {
  using T = typename Program::value_type;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& own_layout = layout_of_program<Part>;
  static constexpr const auto& places = shard_places<typename Part::network>;

 public:
  /// Joins the parts of all ranks: in all of them or, if not `everyone`, in rank 0. own: the part of this rank. whole: null if
  /// the array is not needed here. trained: the array has the trained parameters only.
  static void collect(rank_exchange<T>& ranks, const T* own, T* whole, bool everyone, bool trained) {
    for_slots(trained, [&](const shard_place& place, const parameter_slot& slot, long offset) {
      if (place.is_copy) return;
      const long size = slot.what.extents.size();
      if (!place.is_divided) {
        if (whole) std::copy_n(own + slot.offset, size, whole + offset);
        return;
      }
      for (long begin = 0; begin < size; begin += elements_of_copies) {
        const long count = std::min(elements_of_copies, size - begin);
        std::copy_n(own + slot.offset + begin, count, ranks.own());
        const T* const parts = ranks.gather(count, everyone);
        for (int r = 0; whole && r < ranks.size(); ++r)
          place.for_runs(r, begin, begin + count, [&](long at, long from, long elements) {
            std::copy_n(parts + r * count + from - begin, elements, whole + offset + at);
          });
      }
    });
  }
  /// Cuts out the part of one rank.
  static void spread(const T* whole, T* own, int rank, bool trained) {
    for_slots(trained, [&](const shard_place& place, const parameter_slot& slot, long offset) {
      const long size = slot.what.extents.size();
      std::fill_n(own + slot.offset, size, T{});
      place.for_runs(rank, 0, size,
                     [&](long at, long to, long count) { std::copy_n(whole + offset + at, count, own + slot.offset + to); });
    });
  }

 private:
  /// Calls f(place, own slot, offset of the whole parameter).
  template <class F>
  static void for_slots(bool trained, F&& f) {
    for (int s = 0; s < own_layout.count; ++s) {
      const parameter_slot& slot = own_layout.slots[s];
      if (trained && !slot.what.trainable) continue;
      f(places[std::size_t(s)], slot, layout.slots[places[std::size_t(s)].whole_slot].offset);
    }
  }
};

}  // namespace strata::detail
