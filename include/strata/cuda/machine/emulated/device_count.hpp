// How many devices are emulated.
#pragma once
#include <strata/cuda/machine/emulated/machine_state.hpp>

namespace strata::machine {

inline int device_count() { return detail::machine_state::the().devices(); }
/// Where device_count() is 0.
inline const char* why_no_device() { return "nvcc has not compiled this program, and it has no emulated GPU"; }

}  // namespace strata::machine
