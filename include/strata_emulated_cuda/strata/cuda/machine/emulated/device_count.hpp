// The number of emulated devices, and what they have.
#pragma once
#include <strata/cuda/machine/emulated/machine_state.hpp>

namespace strata::machine {

/// Returns the number of devices. Throws strata_error if an environment variable of the emulation is not a number that it
/// allows.
inline int device_count() { return detail::machine_state::the().devices(); }
/// Returns how many multiprocessors a device has: few, so that blocks of kernels that go by this number have several pieces of
/// work.
inline int multiprocessors(int) { return 2; }
/// Returns how much shared memory a multiprocessor of a device has, in bytes: as in an H100.
inline int shared_bytes_of_multiprocessor(int) { return 228 * 1024; }
/// Says why there is no device, where device_count() is 0.
inline const char* why_no_device() { return "nvcc has not compiled this program, and it has no emulated GPU"; }

}  // namespace strata::machine
