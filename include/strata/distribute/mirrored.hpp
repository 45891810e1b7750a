// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/distribute/synchronous/among_processes.hpp>
#include <string>

namespace strata {

/// `count` cores as devices; all cores of the machine if it is left out.
struct cpus {
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

/// The devices of a backend that a strategy shares a batch among. A backend with devices of its own specialises it, and adds a
/// deduction guide to `mirrored`.
template <class Backend>
struct device_list {
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

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
template <class Backend = default_backend>
struct central_storage : detail::replicas<Backend> {
  static constexpr auto name = "central_storage";

  explicit central_storage(typename device_list<Backend>::type devices = {}, typename engine_options<Backend>::type options = {})
      : detail::replicas<Backend>{devices, options} {}
};

}  // namespace strata
