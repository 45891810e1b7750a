// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/device_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// `count` cores as devices; all cores of the machine if it is left out.
struct cpus {
  using backend = core::default_backend;
  int count = 0;

  constexpr cpus() = default;
  /// Throws strata_error if there is none.
  constexpr explicit cpus(int n) : count(n) {
    if (n < 1) throw_error({"cpus(", n, "): at least one device is needed"});
  }
  constexpr compute_options with(compute_options options) const {
    options.threads = count;
    return options;
  }
};

namespace core {
template <>
struct device_list<default_backend> {
  using type = cpus;
};
}  // namespace core

namespace detail {
/// Whether mirrored takes these, also of another backend: one more device is no option, although options can be made of it.
template <class...>
inline constexpr bool are_devices_and_options = false;
template <lists_devices D>
inline constexpr bool are_devices_and_options<D> = true;
template <lists_devices D, class Options>
inline constexpr bool are_devices_and_options<D, Options> =
    std::is_convertible_v<Options, typename engine_options<typename D::backend>::type> &&
    !std::is_same_v<Options, typename single_device<typename D::backend>::type>;
}  // namespace detail

/// `mirrored{cpus(4)}`: 4 threads share the leaves of each batch and add their gradients in the tree that one thread adds them
/// in, so the results are those of one_device, bit for bit. A replica is a thread here: weights are not copied, they are read by
/// all, and each thread updates a part of them. https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
template <class Backend = core::default_backend>
struct mirrored {
  using backend = Backend;
  static constexpr auto name = "mirrored";
  static constexpr bool trains_graphs = true, trains_shared = std::is_same_v<Backend, core::default_backend>;
  using devices_type = typename core::device_list<Backend>::type;
  using options_type = typename core::engine_options<Backend>::type;
  devices_type devices;
  options_type options;

  constexpr mirrored(devices_type d = {}, options_type o = {}) : devices(std::move(d)), options(std::move(o)) {}
  template <class... Given>
    requires(sizeof...(Given) > 0 && !detail::are_devices_and_options<Given...>)
  explicit mirrored(const Given&...) {
    static_assert(
        detail::diagnosed<detail::refused_with<
            reasons::mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend, Given...>>[0]);
  }

  template <class Program>
  using executor = core::synchronous_executor<Program, Backend>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.with(options)};
  }
};
mirrored() -> mirrored<>;
template <core::lists_devices D>
mirrored(D) -> mirrored<typename D::backend>;
template <core::lists_devices D>
mirrored(D, typename core::engine_options<typename D::backend>::type) -> mirrored<typename D::backend>;
template <core::lists_devices D, class Options>
  requires(detail::are_devices_and_options<D, Options> &&
           !std::is_same_v<Options, typename core::engine_options<typename D::backend>::type>)  // that one takes {.threads = 2}
mirrored(D, Options) -> mirrored<typename D::backend>;

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
using central_storage = mirrored<>;

}  // namespace strata
