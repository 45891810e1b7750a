// A data set in the memory of a GPU, which makes batches of it by the indices of their samples.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/concepts/stored_samples.hpp>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/kernels/stored_batch.hpp>
#include <strata/cuda/machine/device.hpp>

namespace strata::core {

/// The data set on one device.
class kept_samples {
  cuda_device::buffer<std::byte> blocks_[stored_samples::most_blocks];
  stored_samples set_;  // at addresses of the device

 public:
  bool empty() const { return set_.count == 0; }
  std::size_t bytes() const { return empty() ? 0 : set_.bytes(); }
  /// Copies the data set and waits for that. Throws out_of_device_memory.
  void keep(const cuda_device& on, const machine::queue& q, const stored_samples& set) {
    set_ = set;
    for (int k = 0; k < set.block_count; ++k) {
      blocks_[k] = on.allocate<std::byte>(set.blocks[k].bytes);
      on.copy_to_device(q, std::span(set.blocks[k].first, set.blocks[k].bytes), blocks_[k].data());
      set_.blocks[k].first = blocks_[k].data();
    }
    on.wait(q);
  }
  bool mirrors() const { return set_.mirror_count > 0; }
  /// The batch of the samples with the indices to.stored, gathered into the arrays of `to`.
  template <class T>
  machine::stored_batch<T> batch(const samples<T>& to, long x_size, long target_size) const {
    const truth_rows<T>& truth = to.truths[0];
    return {
        set_,   to.stored,  const_cast<T*>(to.inputs[0]), const_cast<std::int32_t*>(truth.labels), const_cast<T*>(truth.targets),
        x_size, target_size};
  }
};

/// True if each device has room for the copies of all its group members in `part` of the memory that is free now.
template <class Device>
bool has_room_for_copies(const device_group<Device>& devices, const stored_samples& set, double part) {
  for (const Device& each : devices) {
    const int device = each.on.index();
    const auto copies = std::ranges::count(devices, device, [](const Device& other) { return other.on.index(); });
    if (double(copies) * double(set.bytes()) > part * double(machine::free_memory(device))) return false;
  }
  return true;
}

}  // namespace strata::core
