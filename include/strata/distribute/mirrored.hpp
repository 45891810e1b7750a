// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/device_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <utility>

namespace strata {

/// `count` cores as devices; all cores of the machine if it is left out.
struct cpus {
  using backend = default_backend;
  int count = 0;

  constexpr cpus() = default;
  /// Throws strata::error if there is none.
  constexpr explicit cpus(int n) : count(n) {
    if (n < 1) throw_error({"cpus(", n, "): at least one device is needed"});
  }
  constexpr compute_options with(compute_options options) const {
    options.threads = count;
    return options;
  }
};

template <>
struct device_list<default_backend> {
  using type = cpus;
};

/// `mirrored{cpus(4)}`: 4 threads share the leaves of each batch and add their gradients in the tree that one thread adds them
/// in, so the results are those of one_device, bit for bit. A replica is a thread here: weights are not copied, they are read by
/// all, and each thread updates a part of them. https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
template <class Backend = default_backend>
struct mirrored {
  using backend = Backend;
  static constexpr auto name = "mirrored";
  typename device_list<Backend>::type devices{};
  typename engine_options<Backend>::type options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.with(options)};
  }
};
mirrored() -> mirrored<>;
template <lists_devices D>
mirrored(D) -> mirrored<typename D::backend>;
template <lists_devices D>
mirrored(D, typename engine_options<typename D::backend>::type) -> mirrored<typename D::backend>;

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
struct central_storage {
  using backend = default_backend;
  static constexpr auto name = "central_storage";
  cpus devices{};
  compute_options options{};

  template <class Program>
  using executor = synchronous_executor<Program, backend>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.with(options)};
  }
};

namespace reasons {
inline constexpr reason mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend{
    "mirrored{cpus(4)}, mirrored{gpus(), {.leaves = 8}}; multi_worker_mirrored takes zero, mesh combines divisions"};
}  // namespace reasons

template <class Given, class Why>
struct mirrored<wrong_argument<Given, Why>> : detail::refusing<mirrored<>> {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refusing<mirrored<>>::refusing;
};
namespace detail {
/// Whether mirrored takes these: one more device is no option, although options can be made of it.
template <class...>
inline constexpr bool are_devices_and_options = false;
template <lists_devices D, class Options>
inline constexpr bool are_devices_and_options<D, Options> =
    std::is_convertible_v<Options, typename engine_options<typename D::backend>::type> &&
    !std::is_same_v<Options, typename single_device<typename D::backend>::type>;
}  // namespace detail
template <class... Given>
  requires(!detail::are_devices_and_options<Given...>)
mirrored(Given...) -> mirrored<detail::refused_with<
    type_list<Given...>, reasons::mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>>;

}  // namespace strata
