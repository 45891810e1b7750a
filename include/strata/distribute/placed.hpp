// placed: layers of one network on several devices of this machine.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/program/stages/by_device.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <type_traits>
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

inline constexpr reason placed_takes_thread_groups_or_gpus_and_then_options{
    "placed takes thread groups, and perhaps compute_options, or GPUs, and perhaps cuda_options: placed{thread_groups<2>{}}, "
    "placed{gpu(0), gpu(1)}"};

template <class Given, const reason& Why, class Backend>
struct placed<detail::refused_arguments<Given, Why>, Backend> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
  static constexpr int device_count = 1 << 20;  // no second sentence, about devices that are missing
};
namespace detail {
template <class... Arguments>
inline constexpr bool taken_by_placed = false;
template <int Count, class... Options>
inline constexpr bool taken_by_placed<thread_groups<Count>, Options...> =
    sizeof...(Options) <= 1 && (std::is_convertible_v<Options, compute_options> && ...);
}  // namespace detail

placed() -> placed<detail::refused_arguments<detail::nothing, placed_takes_thread_groups_or_gpus_and_then_options>>;
template <class Given, class... Options>
  requires(!detail::taken_by_placed<Given, Options...>)
placed(Given, Options...)
    -> placed<detail::refused_arguments<type_list<Given, Options...>, placed_takes_thread_groups_or_gpus_and_then_options>>;
template <int Count>
placed(thread_groups<Count>) -> placed<thread_groups<Count>>;
template <int Count>
placed(thread_groups<Count>, compute_options) -> placed<thread_groups<Count>>;

}  // namespace strata
