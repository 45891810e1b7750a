// How tests set up the emulation, make it fail, and read its counts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <utility>

namespace strata::machine {

/// Emulates `count` devices with `bytes_of_each` bytes of memory each, in place of the present devices. Work that waits
/// on queues is dropped. Throws strata_error if `count` is negative, or if a trainer or a buffer has memory of a device.
inline void emulate_devices(int count, std::size_t bytes_of_each = std::size_t{1} << 30) {
  detail::machine_state::the().reset(count, bytes_of_each);
}
/// Makes a device fail after `after` more works: kernels, copies and sums. Calls that use it then throw device_lost. With a
/// negative number it never fails. Throws strata_error if there is no such device.
inline void lose_device(int device, long after = 0) { detail::machine_state::the().lose(device, after); }
/// Makes the next capture, on any device, throw strata_error.
inline void fail_next_capture() { detail::machine_state::the().fail_next_capture(); }
/// Begins to count the bytes that kernels and copies read and write, see work_counts. For each kernel or copy, a page of 4,096
/// bytes that it reads before it writes to it counts once, and a page that it writes counts once, however often it does so.
/// emulate_devices ends the counting. Throws strata_error if a trainer or a buffer has memory of a device.
inline void count_bytes() { detail::machine_state::the().count_bytes(); }
/// Chooses the order in which queues work: the same seed gives the same order. Without a call, the seed is the number in the
/// environment variable STRATA_EMULATION_SEED, or 1.
inline void emulate_order(std::uint64_t seed) { detail::machine_state::the().set_seed(seed); }
/// Returns the counts of the work of a device since the last call, and sets them to 0. Throws strata_error if there is no
/// such device.
inline work_counts take_counts(int device) {
  auto& all = detail::machine_state::the();
  const auto locked = all.lock();
  return std::exchange(all.counts(device), {});
}

}  // namespace strata::machine
