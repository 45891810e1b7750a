// one_device: one device of this machine, such as all of its cores.
#pragma once
#include <strata/distribute/device_list.hpp>
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
template <class Given, const reason& Why>
struct one_device<detail::refused_devices<Given, Why>> : one_device<> {
  static_assert(sizeof(detail::spoken<wrong_devices<Given, detail::because<Why>>>()) > 0, "one_device takes one device");
  explicit one_device(const Given&) {}
};

one_device() -> one_device<>;
one_device(compute_options) -> one_device<>;
template <class Given>
one_device(Given) -> one_device<
    detail::refused_devices<Given, one_device_takes_a_device_such_as_gpu_0_or_compute_options_and_mirrored_takes_several>>;

}  // namespace strata
