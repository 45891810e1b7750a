// Errors of a device: its memory is too small, or it fails.
#pragma once
#include <cstddef>
#include <functional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <utility>

namespace strata {

/// A device does not have the requested memory.
struct out_of_device_memory : strata_error {
  int device;
  std::size_t needed, free, total;  // bytes

  out_of_device_memory(int of_device, std::size_t bytes_needed, std::size_t bytes_free, std::size_t bytes_in_all)
      : strata_error(detail::text_of({"gpu(", of_device, "): out of memory: ", bytes_needed, " bytes are needed, ", bytes_free,
                                      " of ", bytes_in_all, " are free"})),
        device(of_device),
        needed(bytes_needed),
        free(bytes_free),
        total(bytes_in_all) {}
  /// A copy whose message also lists what needs memory.
  out_of_device_memory(const out_of_device_memory& e, const std::string& what_for)
      : strata_error(detail::text_of({e.what(), what_for})), device(e.device), needed(e.needed), free(e.free), total(e.total) {}
};

namespace core {
/// A device has no memory to measure the algorithms of a library for a product or a convolution.
struct no_memory_to_choose : out_of_device_memory {
  std::function<void()> choose;  // when the device has more room. Where it does not suffice, a kernel of strata is chosen

  no_memory_to_choose(const out_of_device_memory& e, std::function<void()> when_there_is_room)
      : out_of_device_memory(e), choose(std::move(when_there_is_room)) {}
};
}  // namespace core

/// A device has failed, and cannot be used by this process any more; the CPU and other devices can. A new process may use it
/// again, unless the hardware is broken.
struct device_lost : strata_error {
  int device;

  /// during: the work that has failed, or that came after it. why: in the words of CUDA.
  device_lost(int which, const char* during, const char* why)
      : strata_error(detail::text_of(
            {"gpu(", which, ") is lost: ", why, ", noticed in ", during, "; this process cannot use it any more"})),
        device(which) {}
};

}  // namespace strata
