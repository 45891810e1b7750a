// one_device: one device of this machine, such as all of its cores.
#pragma once
#include <strata/distribute/synchronous/synchronous.hpp>
#include <utility>

namespace strata {

/// The default strategy. `one_device{{.threads = 2}}` is the CPU with two threads; a backend with settings of its own adds a
/// deduction guide for them.  https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
template <class Backend = default_backend>
struct one_device {
  using backend = Backend;
  static constexpr auto name = "one_device";
  typename engine_options<Backend>::type options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};
one_device() -> one_device<>;
one_device(compute_options) -> one_device<>;

}  // namespace strata
