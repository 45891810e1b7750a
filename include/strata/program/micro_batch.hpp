// How many samples go through a network together on a processor with caches.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <strata/program/compiled.hpp>

namespace strata::core {

/// The samples whose activations stay in a second-level cache while the weights pass through it. With several segments, the next
/// segment reads activations only after all samples, so only the output of one group and of the next one must fit. Cutting a plan
/// changes no bits, because the micro-batches are those of the whole plan.
template <class Program, class Backend, purpose Why>
constexpr int samples_in_cache(int segment = 0) {
  constexpr const auto& plan = plan_of<Program, whole_backend_of<Backend>, Why>;
  constexpr long bytes = long(sizeof(typename Program::value_type));
  constexpr long weights = layout_of<typename whole_network_of<typename Program::network>::items>.trainable;
  constexpr long cache = std::max(1L << 20, weights * bytes);
  long numbers = plan.passing + plan.scratch_per_sample + 1;
  if (plan.needs_whole_leaf()) {
    numbers = 1;
    for (int g = plan.first_of_segment[segment]; g < plan.first_of_segment[segment + 1]; ++g)
      numbers = std::max(numbers, 4L * plan.groups[g].size);
  }
  return int(std::clamp<long>(long(std::bit_floor(std::uint64_t(cache / (numbers * bytes) + 1))), 4, 256));
}

/// The samples of a segment that go through the network together, unless compute_options::micro_batch sets another number.
/// most(wanted): that option, bounded by the budget of the backend, if it has one.
template <class Program, class Backend, purpose Why>
struct samples_at_a_time {
  static constexpr int of(int segment = 0) { return samples_in_cache<Program, Backend, Why>(segment); }
  static constexpr int most(int wanted) { return wanted; }
};

/// The samples of a micro-batch on a backend that splits programs, in a process that computes `leaves` leaves of `capacity`
/// samples. wanted: compute_options::micro_batch. With a timetable of several micro-batches, each row of threads computes that
/// many, but at least one for each leaf.
template <class Program, class Backend>
constexpr int samples_of_turn(int capacity, int leaves, int rows, int wanted) {
  constexpr int micro_batches = Backend::split::table.micro_batches;
  if constexpr (micro_batches > 1) {
    const int pieces = std::max(1, micro_batches * rows / std::max(1, leaves));
    return std::max(1, (capacity + pieces - 1) / pieces);
  } else {
    return std::min(capacity, wanted > 0 ? wanted : samples_in_cache<Program, Backend, purpose::training>());
  }
}

}  // namespace strata::core
