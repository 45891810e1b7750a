// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/distribute/device_list.hpp>
#include <strata/distribute/synchronous/among_processes.hpp>
#include <string>

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

namespace detail {
template <class Backend>
struct replicas {
  using backend = Backend;
  typename device_list<Backend>::type devices;
  typename engine_options<Backend>::type options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.with(options)};
  }
};
}  // namespace detail

/// `mirrored{cpus(4)}`: 4 threads share the leaves of each batch and add their gradients in the tree that one thread adds them
/// in, so the results are those of one_device, bit for bit. A replica is a thread here: weights are not copied, they are read by
/// all, and each thread updates a part of them. https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
template <class Backend = default_backend>
struct mirrored : detail::replicas<Backend> {
  static constexpr auto name = "mirrored";

  explicit mirrored(typename device_list<Backend>::type devices = {}, typename engine_options<Backend>::type options = {})
      : detail::replicas<Backend>{devices, options} {}
};
template <class Given, const reason& Why>
struct mirrored<detail::refused_devices<Given, Why>> : mirrored<> {
  static_assert(sizeof(detail::spoken<wrong_devices<Given, detail::because<Why>>>()) > 0, "mirrored takes a list of devices");
  template <class... Options>
  explicit mirrored(const Given&, const Options&...) {}
};

mirrored() -> mirrored<>;
template <lists_devices D>
mirrored(D) -> mirrored<typename D::backend>;
template <lists_devices D>
mirrored(D, typename engine_options<typename D::backend>::type) -> mirrored<typename D::backend>;
template <class Given, class... Options>
  requires(!lists_devices<Given>)
mirrored(Given, Options...) -> mirrored<detail::refused_devices<Given, mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4>>;

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
template <class Backend = default_backend>
struct central_storage : detail::replicas<Backend> {
  static constexpr auto name = "central_storage";

  explicit central_storage(typename device_list<Backend>::type devices = {}, typename engine_options<Backend>::type options = {})
      : detail::replicas<Backend>{devices, options} {}
};
template <class Given, const reason& Why>
struct central_storage<detail::refused_devices<Given, Why>> : central_storage<> {
  static_assert(sizeof(detail::spoken<wrong_devices<Given, detail::because<Why>>>()) > 0, "central_storage takes cpus");
  template <class... Options>
  explicit central_storage(const Given&, const Options&...) {}
};

central_storage() -> central_storage<>;
central_storage(cpus) -> central_storage<>;
central_storage(cpus, compute_options) -> central_storage<>;
template <class Given, class... Options>
central_storage(Given, Options...)
    -> central_storage<detail::refused_devices<Given, central_storage_takes_cpus_and_gpus_are_for_mirrored>>;

}  // namespace strata
