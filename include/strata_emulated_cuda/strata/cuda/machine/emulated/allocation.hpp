// Allocates and releases memory of emulated devices.
#pragma once
#include <cstddef>
#include <cstring>
#include <strata/base/error.hpp>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/errors.hpp>

namespace strata::machine {

/// Returns the number of free bytes of a device. They may lie in several ranges. Throws strata_error if there is no such
/// device.
inline std::size_t free_memory(int device) {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  return all.memory(device).free();
}

/// Returns the address of `bytes` zeroed bytes of a device. Throws out_of_device_memory if no free range is large enough,
/// device_lost if the device is lost, and strata_error if there is no such device, or if the calling thread captures a
/// queue.
inline void* allocate(int device, std::size_t bytes) {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  all.refuse_lost(device, "an allocation of memory");
  detail::refuse_while_captured("memory is allocated");
  auto& memory = all.memory(device);
  void* const made = memory.allocate(bytes);
  if (!made) throw_exception(out_of_device_memory(device, bytes, memory.free(), memory.capacity()));
  const detail::machine_state::open_memory open(all);
  std::memset(made, 0, bytes);
  return made;
}
/// Frees what `allocate` returned for the same device, after all work on queues of this device. Does nothing for null, or if
/// there is no such device. Aborts the program for any other address. If the calling thread captures a queue, the capture fails.
inline void release(int device, void* memory) noexcept {
  if (!memory) return;  // before the state, which throws where a variable of the environment is wrong
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  if (device < 0 || device >= all.devices()) return;
  detail::spoil_capture("memory is released");
  all.finish_device(device);
  all.memory(device).release(memory);
}

}  // namespace strata::machine
