// The metric sums of the steps of an epoch, which stay on a GPU until the host asks for them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/cuda/engine/totals.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/compiled.hpp>
#include <vector>

namespace strata {

/// Device: an engine_device, always the same.
template <class Program>
class epoch_totals {
  using kernel = machine::add_totals<Program>;
  cuda_device::buffer<double> on_device_;
  std::vector<double> on_host_;

 public:
  /// A kernel that adds those of one step.
  using grid = machine::grid<machine::detail::one_thread_each<kernel>>;

  void allocate(const cuda_device& on) {
    on_device_ = on.template allocate<double>(kernel::size);
    on_host_.resize(kernel::size);
  }
  template <class Device>
  void begin(const Device& device, const metric_sums<Program>& so_far) {
    std::ranges::fill(on_host_, 0.0);
    for (std::size_t k = 0; k < so_far.size(); ++k) on_host_[2 * k] = so_far[k].sum, on_host_[2 * k + 1] = so_far[k].count;
    device.write(on_host_, on_device_.data());
  }
  /// sums: of all leaves, from the loss on. penalties: of each trained parameter.
  grid add(const machine::leaf_doubles& sums, const double* penalties) const {
    constexpr const auto& layout = layout_of_program<Program>;
    constexpr int penalty_count = layout.has_regularizers() ? trained_ranges(layout).count : 0;
    return machine::indices(2 * kernel::reported, kernel{sums, penalties, penalty_count, on_device_.data()});
  }
  /// wait(): returns when the device is done.
  template <class Device, class Wait>
  totals_of_steps<Program> read(const Device& device, Wait&& wait) {
    device.read(on_device_.data(), on_host_);
    wait();
    return kernel::read(on_host_);
  }
};

}  // namespace strata
