// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/distribute/synchronous/synchronous.hpp>
#include <string>

namespace strata {

/// `count` cores as devices.
struct cpus {
  int count;

  /// Throws strata::error if there is none.
  constexpr explicit cpus(int n) : count(n) {
    if (n < 1) throw error("cpus(" + std::to_string(n) + "): at least one device is needed");
  }
};

namespace detail {
template <class Backend>
struct replicas_of_cpus {
  cpus devices;
  compute_options options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    compute_options with = options;
    with.threads = devices.count;
    return {std::move(optimizer), seed, with};
  }
};
}  // namespace detail

/// `mirrored{cpus(4)}`: 4 threads share the leaves of each batch and add their gradients in the tree that one thread adds them
/// in, so the results are those of one_device, bit for bit. A replica is a thread here: weights are not copied, they are read by
/// all, and each thread updates a part of them. https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
struct mirrored : detail::replicas_of_cpus<cpu> {
  static constexpr auto name = "mirrored";

  explicit mirrored(cpus devices = cpus(available_cores()), compute_options options = {})
      : detail::replicas_of_cpus<cpu>{devices, options} {}
};

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
struct central_storage : detail::replicas_of_cpus<cpu> {
  static constexpr auto name = "central_storage";

  explicit central_storage(cpus devices = cpus(available_cores()), compute_options options = {})
      : detail::replicas_of_cpus<cpu>{devices, options} {}
};

}  // namespace strata
