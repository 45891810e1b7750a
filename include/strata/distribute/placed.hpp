// placed: layers of one network on several devices of this machine.
#pragma once
#include <strata/base/error.hpp>
#include <strata/distribute/synchronous/synchronous.hpp>
#include <strata/program/split.hpp>
#include <utility>

namespace strata {

/// `Count` devices, each of which is a group of threads of this machine: device k is thread group k.
template <int Count>
struct thread_groups {
  static_assert(Count >= 1, "at least one device is needed");
  static constexpr int count = Count;
  int threads = 0;  // of each; 0: all cores together
};

/// `placed{thread_groups<2>{}}`: each layer is computed by the device that `on` names in the network's type. Devices compute at
/// the same time what does not depend on each other; what one reads of another is sent. The results are those of one_device for
/// the same network without `on`, bit for bit. A network that names a device that is not there does not compile.
/// https://www.tensorflow.org/guide/gpu#manual_device_placement
template <class Devices, class Backend = default_backend>
struct placed {
  using backend = split_backend<Backend, by_device<Devices::count>>;
  static constexpr auto name = "placed";
  static constexpr int device_count = Devices::count;
  Devices groups{};
  compute_options options{};  // threads: those of `groups`

  template <class Program>
  using executor = synchronous_executor<Program, backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    compute_options with = options;
    with.threads = groups.threads;
    return {std::move(optimizer), seed, with};
  }
};
template <int Count>
placed(thread_groups<Count>) -> placed<thread_groups<Count>>;
template <int Count>
placed(thread_groups<Count>, compute_options) -> placed<thread_groups<Count>>;

}  // namespace strata
