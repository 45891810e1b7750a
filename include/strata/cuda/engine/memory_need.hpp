// The error of a GPU whose memory is too small also says what the GPU needs.
// needs: boost_context
#pragma once
#include <strata/base/error.hpp>
#include <strata/cuda/machine/device.hpp>
#include <utility>

namespace strata::detail {

/// Calls f(). If it throws out_of_device_memory, need(index of the device) is added to the text.
template <class F, class Need>
void or_name_need(F&& f, Need&& need) {
  try {
    std::forward<F>(f)();
  } catch (const out_of_device_memory& e) {
    throw_exception(out_of_device_memory(e, need(e.device)));
  }
}

}  // namespace strata::detail
