// Sums over all leaves of a batch, on a GPU: statistics between two segments, and the metric sums of steps.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/cuda/machine/tree.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/pass.hpp>
#include <strata/program/step_result.hpp>
#include <vector>

namespace strata::machine {

/// The sums of all leaves, `stride` doubles from leaf to leaf.
struct leaf_doubles {
  const double* of;
  long stride;
  int leaves;

  constexpr double sum(long i) const {
    return sum_over_leaves<double>(leaves, [&](int l) { return of[l * stride + i]; });
  }
};

struct sum_statistics {
  leaf_doubles from;
  double* to;
  constexpr void operator()(long i) const { to[i] = from.sum(i); }
};

/// Stores the metric sums of a step, as add_metric_sums makes them: for i below 2 * reported.
template <class Program>
struct store_step_sums {
  using counts = strata::detail::sum_counts<Program>;
  static constexpr long reported = long(counts::reported), before = reported - long(counts::of_leaf);
  static constexpr long size = 1 + 2 * reported;  // of an entry: the number of the step, its sums
  leaf_doubles from;                              // from the loss on
  const double* penalties;
  int penalty_count;
  const std::int64_t* number;  // of the step
  double* entries;
  long entry_count;

  constexpr double sum(long i) const {
    const long pair = i / 2, which = i % 2;
    double value = 0;
    if (pair >= before)
      value = from.sum(i - 2 * before);
    else if (which == 1)
      value = from.sum(1);
    else
      for (long k = 0; k < long(counts::outputs); ++k) value += from.sum(2 * k);
    if (i == 0 && penalty_count > 0) {
      const double count = from.sum(1);
      for (int k = 0; k < penalty_count; ++k) value += strata::detail::rounded(penalties[k] * count);
    }
    return value;
  }
  constexpr void operator()(long i) const {
    double* const entry = entries + *number % entry_count * size;
    entry[1 + i] = sum(i);
    if (i == 0) entry[0] = double(*number);
  }
};

}  // namespace strata::machine

namespace strata::core {

/// The metric sums of the last steps, which stay on a GPU until the host reads them. Device: an engine_device, always the same.
template <class Program>
class step_sums {
  using kernel = machine::store_step_sums<Program>;
  cuda_device::buffer<double> on_device_;
  std::vector<double> on_host_;
  long entries_ = 0;
  std::int64_t begun_ = 0;

  std::size_t place_of(long number) const { return std::size_t(number % entries_ * kernel::size); }

 public:
  /// A kernel that stores those of one step.
  using grid = machine::grid<machine::detail::one_thread_each<kernel>>;

  template <class Device>
  void allocate(const Device& device) {
    entries_ = detail::most_pending_results;
    on_host_.resize(std::size_t(entries_ * kernel::size));
    on_device_ = device.on.template allocate<double>(on_host_.size());
    device.write(on_host_, on_device_.data());
  }
  /// The number of the step that begins now, from 1.
  std::int64_t next() { return ++begun_; }
  /// sums: of all leaves, from the loss on. penalties: of each trained parameter. number: of the step, on the device.
  grid store(const machine::leaf_doubles& sums, const double* penalties, const std::int64_t* number) const {
    constexpr const auto& layout = layout_of_program<Program>;
    constexpr int penalty_count = layout.has_regularizers() ? trained_ranges(layout).count : 0;
    return machine::indices(2 * kernel::reported, kernel{sums, penalties, penalty_count, number, on_device_.data(), entries_});
  }
  /// Those of a step. read_on_device(copy): calls copy when the device has all steps, and waits for it.
  template <class Device, class Read>
  metric_sums<Program> of_step(long number, const Device& device, Read&& read) {
    const double* const entry = on_host_.data() + place_of(number);
    if (entry[0] != double(number))
      read([&] {  // and of those after it, as far as they lie behind it
        const long count = std::min(entries_ - number % entries_, begun_ - number + 1);
        const std::size_t begin = place_of(number), size = std::size_t(count * kernel::size);
        device.read(on_device_.data() + begin, std::span(on_host_).subspan(begin, size));
      });
    if (entry[0] != double(number)) detail::refuse_lost_sums(number);
    metric_sums<Program> sums;
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = {entry[1 + 2 * k], entry[2 + 2 * k]};
    return sums;
  }
};

}  // namespace strata::core
