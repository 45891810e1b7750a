// How tests set up the emulation, make it fail, and read its counts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <utility>

namespace strata::machine {

/// For tests: `count` devices with so many bytes each, in place of those that the environment asks for. Throws
/// strata::error while a trainer or a buffer has memory of a device.
inline void emulate_devices(int count, std::size_t bytes_of_each = std::size_t{1} << 30) {
  detail::machine_state::the().reset(count, bytes_of_each);
}
/// For tests: a device does so many works more, and then none.
inline void lose_device(int device, long after = 0) { detail::machine_state::the().lose(device, after); }
/// For tests: the next graph that is recorded, on any device, is an error.
inline void fail_next_capture() { detail::machine_state::the().fail_next_capture(); }
/// From now on counts what kernels and copies read and write, in pages of 4,096 bytes: each page that a kernel reads, and each
/// that it writes, however often. Until emulate_devices is called again.
inline void count_bytes() { detail::machine_state::the().count_bytes(); }
/// In which order queues work.
inline void emulate_order(std::uint64_t seed) { detail::machine_state::the().set_seed(seed); }
/// What a device was asked to do since the last call.
inline work_counts take_counts(int device) { return std::exchange(detail::machine_state::the().counts(device), {}); }

}  // namespace strata::machine
