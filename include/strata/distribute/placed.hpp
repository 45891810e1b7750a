// placed: layers of one network on several devices of this machine.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/distribute/one_device.hpp>
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
template <class Devices, class Backend = default_backend>
struct placed {
  using division = pipelines<1, by_device<Devices::count>, Backend>;
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

namespace reasons {
inline constexpr reason placed_takes_thread_groups_or_gpus_and_then_options{
    "placed{thread_groups<2>{}}, placed{gpu(0), gpu(1)}; compute_options or cuda_options may follow"};
}  // namespace reasons

template <class Given, class Why, class Backend>
struct placed<wrong_argument<Given, Why>, Backend> : detail::refusing<one_device<>> {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refusing<one_device<>>::refusing;
  struct division {
    struct split {
      static constexpr int device_count = 1 << 20;  // no second diagnostic, about missing devices
    };
  };
};
template <class... Given>
placed(Given...)
    -> placed<detail::refused_with<type_list<Given...>, reasons::placed_takes_thread_groups_or_gpus_and_then_options>>;

}  // namespace strata
