// placed: layers of one network on several devices of this machine.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/program/stages/by_device.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <utility>

namespace strata {

/// `Count` devices, each of which is a group of threads of this machine: device k is thread group k.
template <int Count>
struct thread_groups {
  static constexpr int count = Count;
  int threads = 0;  // of each; 0: all cores together
};

/// `placed{thread_groups<2>{}}`: each layer is computed by the device that `on` names in the network's type. Devices compute at
/// the same time what does not depend on each other; what one reads of another is sent. The results are those of one_device for
/// the same network without `on`, bit for bit. A network that names a device that is not there does not compile.
/// https://www.tensorflow.org/guide/gpu#manual_device_placement
template <class Devices, class Backend = core::default_backend>
struct placed {
  using division = core::pipelines<1, core::by_device<Devices::count>, Backend>;
  using backend = typename division::backend;
  static constexpr auto name = "placed";
  Devices groups{};
  compute_options options{};  // threads: those of `groups`

  template <class Program>
  using executor = typename division::template in_threads<Program>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    compute_options with = options;
    with.threads = groups.threads;
    return division::template make_in_threads<Program>(std::move(optimizer), seed, with);
  }
};
template <int Count>
placed(thread_groups<Count>) -> placed<thread_groups<Count>>;
template <int Count>
placed(thread_groups<Count>, compute_options) -> placed<thread_groups<Count>>;

}  // namespace strata

#include <strata/distribute/placed.ipp>
