// one_device: all cores of this machine as one device.
#pragma once
#include <strata/distribute/synchronous/synchronous.hpp>

namespace strata {

/// The default strategy.  https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
template <class Backend>
struct one_device_on {
  static constexpr auto name = "one_device";
  compute_options options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};

using one_device = one_device_on<cpu>;

}  // namespace strata
