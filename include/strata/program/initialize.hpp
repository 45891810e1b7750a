// The first values of all parameters, from one seed.
#pragma once
#include <span>
#include <strata/network/layout.hpp>
#include <vector>

namespace strata::core {

/// The value of a weight depends on the seed and on its parameter's place in the network, on nothing else.
template <class T, int Count>
[[gnu::cold]] void initialize_parameters(const parameter_layout<Count>& layout, std::span<T> arena, std::uint64_t seed) {
  std::vector<double> values;
  for (int s = 0; s < Count; ++s) {
    const parameter_slot& slot = layout.slots[s];
    values.assign(std::size_t(slot.what.extents.size()), 0.0);
    slot.what.start->fill(values, slot.what.extents, philox{seed}.fork(std::uint64_t(s)));
    for (std::size_t i = 0; i < values.size(); ++i) arena[std::size_t(slot.offset) + i] = static_cast<T>(values[i]);
  }
}

}  // namespace strata::core
