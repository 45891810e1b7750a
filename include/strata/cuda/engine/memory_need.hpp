// Adds the memory that a GPU needs to the error of a GPU whose memory is too small.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::detail {

struct memory_need {
  long bytes;
  std::string what_for;
};
inline std::string of_leaves(long count) { return std::to_string(count) + (count == 1 ? " leaf" : " leaves"); }
/// "96 bytes: 32 for weights, 48 for activations and 16 for the batch". What needs no bytes is left out.
[[gnu::cold]] inline std::string text_of_needs(const std::vector<memory_need>& all) {
  long sum = 0;
  std::string parts, last;
  for (const memory_need& each : all) {
    if (each.bytes == 0) continue;
    sum += each.bytes;
    if (!last.empty()) parts += (parts.empty() ? "" : ", ") + last;
    last = text_of({each.bytes, " for ", each.what_for});
  }
  return text_of({sum, " bytes: ", parts, parts.empty() ? "" : " and ", last});
}

/// Calls f(). If it throws out_of_device_memory, need(index of the device) is added to the text.
template <class F, class Need>
void name_need_on_failure(F&& f, Need&& need) {
  try {
    std::forward<F>(f)();
  } catch (const out_of_device_memory& e) {
    throw_exception(out_of_device_memory(e, need(e.device)));
  }
}

/// name_need_on_failure for memory whose size leaves.grow() has returned: after any error, the next grow() returns it again. If
/// memory was too small, release() frees the part that f() has allocated, so that there is room for smaller batches.
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

/// Calls f() until a library has had the memory to choose its algorithms. If that is missing, calls release(), lets the library
/// choose, and calls f() again, in which leaves.grow() returns all sizes again.
template <class T, class F, class Release>
void with_room_to_choose(leaf_schedule<T>& leaves, F&& f, Release&& release) {
  for (;;) {
    try {
      return f();
    } catch (const no_memory_to_choose& e) {
      leaves.forget();
      release();
      e.choose();
    }
  }
}

}  // namespace strata::detail
