// The error of a GPU whose memory is too small also says what the GPU needs.
// needs: boost_context
#pragma once
#include <strata/base/error.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <utility>

namespace strata::detail {

/// Calls f(). If it throws out_of_device_memory, need(index of the device) is added to the text.
template <class F, class Need>
void name_need_on_failure(F&& f, Need&& need) {
  try {
    std::forward<F>(f)();
  } catch (const out_of_device_memory& e) {
    throw_exception(out_of_device_memory(e, need(e.device)));
  }
}

/// The same where leaves.grow() has asked for the memory: after any error the next one asks again. If memory was too small,
/// release() gives back what f() has got, so that there is room for smaller batches.
template <class T, class F, class Release, class Need>
void forget_on_failure(leaf_schedule<T>& leaves, F&& f, Release&& release, Need&& need) {
  try {
    name_need_on_failure(std::forward<F>(f), std::forward<Need>(need));
  } catch (const out_of_device_memory&) {
    leaves.forget();
    std::forward<Release>(release)();
    throw;
  } catch (...) {
    leaves.forget();
    throw;
  }
}

}  // namespace strata::detail
