// Numbers of all parameters, such as norms, which a GPU collects from the GPUs that have the parameters.
#pragma once
#include <cstddef>
#include <span>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/place_contents.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/network/parameter_ranges.hpp>

namespace strata {

namespace machine {
/// Copies values into another order.
struct reorder {
  const double* from;
  const int* places;  // of each number
  double* to;
  constexpr void operator()(long i) const { to[i] = from[places[i]]; }
};
}  // namespace machine

namespace core {
/// A value for each trained parameter, on one device.
template <class Program, class Backend>
class parameter_numbers {
  using contents = place_contents<Program, Backend>;
  static constexpr int count = trained_ranges(contents::layout).count;
  cuda_device::buffer<double> numbers_;  // those of place 0 first, and so on; then the same in the order of the layout
  cuda_device::buffer<int> order_;

  /// For each parameter, in the order of the layout: its position in the order by places.
  struct parameter_order {
    int at[count + 1] = {};
    int first[contents::places + 1] = {};  // of each place
  };
  static constexpr parameter_order order = [] {
    parameter_order o;
    int next = 0;
    for (int p = 0; p < contents::places; ++p) {
      o.first[p] = next;
      for (int k = 0, s = 0; s < contents::layout.count; ++s)
        if (contents::layout.slots[s].what.trainable) {
          if (contents::arenas.slots[s].place == p) o.at[k] = next++;
          ++k;
        }
    }
    o.first[contents::places] = next;
    return o;
  }();

 public:
  parameter_numbers(const cuda_device& on, const machine::queue& q)
      : numbers_(on.allocate<double>(2 * std::size_t(count))), order_(on.allocate<int>(std::size_t(count))) {
    on.copy_to_device(q, std::span(order.at).first(std::size_t(count)), order_.data());
  }
  /// Enqueues copies. numbers_of: those of a place, which has written them by then. Returns those of all parameters in the order
  /// of the layout.
  template <class Place, class NumbersOf>
  const double* collect(const machine::queue& q, const device_group<Place>& from, NumbersOf&& numbers_of) const {
    for (const Place& p : from)
      if (const int first = order.first[p.number], own = order.first[p.number + 1] - first; own > 0)
        machine::copy_between(q, numbers_.data() + first, numbers_of(p), std::size_t(own) * sizeof(double));
    double* const ordered = numbers_.data() + count;
    machine::for_each_index(q, count, machine::reorder{numbers_.data(), order_.data(), ordered});
    return ordered;
  }
};
}  // namespace core

}  // namespace strata
