// The sums of leaves of a program with several outputs, which one GPU gets from those that compute the outputs.
#pragma once
#include <cstddef>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/place_contents.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/pass.hpp>
#include <type_traits>
#include <vector>

namespace strata {

namespace machine {
/// The sums of some outputs, which another device has computed, of all leaves: those in columns where `of_column` is `which`.
struct take_output_columns {
  const double* from;
  const int* of_column;
  int which;
  long size;
  double* to;
  constexpr void operator()(long i) const {
    if (of_column[i % size] == which) to[i] = from[i];
  }
};
}  // namespace machine

namespace core {
/// Lives on the GPU of the first output. Needs no work and no memory if all outputs are there.
template <class Program, class Backend>
class output_sums {
  using contents = place_contents<Program, Backend>;
  using sums_of_leaf = leaf_sums<Program, Backend>;
  cuda_device::buffer<double> copies_;
  cuda_device::buffer<int> place_of_column_;  // of the sums of a leaf

 public:
  /// home: the place of the first output.
  void prepare(const auto& home) {
    if constexpr (contents::has_outputs_at_several_places) {
      const std::vector<int> of = places_of_columns();
      place_of_column_ = home.on.template allocate<int>(of.size());
      home.write(of, place_of_column_.data());
    }
  }
  void grow(const auto& home, int leaves) {
    if constexpr (contents::has_outputs_at_several_places) home.grow(copies_, std::size_t(leaves) * sums_of_leaf::size);
  }
  /// Brings the sums of so many leaves to the place of the first output.
  template <class Place>
  void join(const device_group<Place>& places, int leaves) const {
    if constexpr (contents::has_outputs_at_several_places) {
      const std::size_t size = std::size_t(leaves) * sums_of_leaf::size;
      const Place& home = places[contents::home];
      places.wait_for_each_other();
      for (const Place& p : places) {
        if (p.number == home.number) continue;
        machine::copy_between(home.queue, copies_.data(), p.sums.data(), size * sizeof(double));
        machine::for_each_index(home.queue, long(size),
                                machine::take_output_columns{copies_.data(), place_of_column_.data(), p.number,
                                                             long(sums_of_leaf::size), home.sums.data()});
      }
    }
  }

 private:
  static std::vector<int> places_of_columns() {
    std::vector<int> of(sums_of_leaf::size, contents::home);
    int metrics = int(sums_of_leaf::statistics) + 2 * contents::plan.output_count;
    [&]<class... Output>(type_list<Output...>) {
      int k = 0;
      const auto next = [&]<class One>(std::type_identity<One>) {
        const int place = contents::place_of_output(k);
        for (int i = 0; i < 2; ++i) of[sums_of_leaf::statistics + std::size_t(2 * k + i)] = place;
        const int size = 2 * int(detail::pairs_of_metrics<Program>(std::size_t(k), typename One::metrics{}));
        for (int i = 0; i < size; ++i) of[std::size_t(metrics++)] = place;
        ++k;
      };
      (next(std::type_identity<Output>{}), ...);
    }(typename Program::outputs{});
    return of;
  }
};
}  // namespace core

}  // namespace strata
