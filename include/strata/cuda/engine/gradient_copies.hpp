// Copies of the gradients of other GPUs, with which each GPU adds up those of all leaves by itself.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/network/leaves.hpp>
#include <strata/optimizers/gradient.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// T: of the elements.
template <class T>
class gradient_copies {
  long elements_;                               // of a gradient
  std::vector<cuda_device::buffer<T>> memory_;  // of each device

 public:
  using arrays = std::vector<std::vector<T*>>;  // of a gradient, on each device

  explicit gradient_copies(long elements) : elements_(elements) {}

  /// Room for copies of the gradients of `leaves` leaves on each device, but for its own.
  template <class Device>
  void reserve(const device_group<Device>& devices, int leaves) {
    memory_.resize(devices.size());
    for (const Device& d : devices) {
      d.grow(memory_[std::size_t(d.number)], std::size_t(copies_of(leaves, d.number, int(devices.size())) * elements_));
    }
  }
  /// The copies that one of `devices` devices needs of the gradients of `leaves` leaves: those of the others.
  static long copies_of(int leaves, int number, int devices) { return leaves - share_of(leaves, number, devices).size(); }
  void release() { memory_.clear(); }

  /// For each device its own arrays, and addresses for copies of the others. free_graphs(): called before such memory is freed.
  template <class Device, class FreeGraphs>
  arrays places(const device_group<Device>& devices, const global_gradient<T, cuda_device>& gradient, FreeGraphs&& free_graphs) {
    memory_.resize(devices.size());
    arrays all;
    for (const Device& d : devices) {
      std::vector<T*>& own = all.emplace_back(gradient.arrays(), gradient.arrays() + gradient.count());
      if (devices.size() == 1) break;  // there is nothing to copy
      auto& memory = memory_[std::size_t(d.number)];
      const auto size = std::size_t(std::ranges::count_if(own, [&](const T* p) { return !is_own(d, p); }) * elements_);
      if (size > memory.size()) free_graphs();
      d.grow(memory, size);
      T* to = memory.data();
      for (T*& each : own)
        if (!is_own(d, each)) each = std::exchange(to, to + elements_);
    }
    return all;
  }
  template <class Device>
  void copy(const device_group<Device>& devices, const global_gradient<T, cuda_device>& gradient, const arrays& places) const {
    for (const Device& d : devices)
      for (int k = 0; k < gradient.count(); ++k)
        if (T* const to = places[std::size_t(d.number)][std::size_t(k)]; to != gradient.arrays()[k])
          machine::copy_between(d.queue, to, gradient.arrays()[k], std::size_t(elements_) * sizeof(T));
  }

 private:
  static bool is_own(const auto& device, const T* p) {
    const std::less<const T*> before;
    return !before(p, device.gradients.data()) && before(p, device.gradients.data() + device.gradients.size());
  }
};

}  // namespace strata::core
