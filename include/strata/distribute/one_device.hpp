// one_device: one device of this machine, such as all of its cores.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/device_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// The default strategy. `one_device{{.threads = 2}}` is the CPU with two threads; a backend with devices of its own, such as
/// `one_device{gpu(0), {.leaves = 2}}`, adds deduction guides for them.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
template <class Backend = core::default_backend>
struct one_device {
  using backend = Backend;
  static constexpr auto name = "one_device";
  static constexpr bool trains_graphs = true, trains_shared = std::is_same_v<Backend, core::default_backend>;
  using options_type = typename core::engine_options<Backend>::type;
  options_type options{};

  constexpr one_device(options_type given = {}) : options(std::move(given)) {}
  constexpr one_device(const typename core::single_device<Backend>::type& device, options_type given)
      : options(device.with(std::move(given))) {}
  template <class First, class... Given>
    requires(!std::is_convertible_v<First, options_type>)
  explicit one_device(const First&, const Given&...) {
    static_assert(detail::diagnosed<detail::refused_with<
                      reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options, First, Given...>>[0]);
  }
  template <class... Given>  // after options in braces
    requires(sizeof...(Given) > 0)
  one_device(const options_type&, const Given&...) {
    static_assert(detail::diagnosed<detail::refused_with<
                      reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options, Given...>>[0]);
  }

  template <class Program>
  using executor = core::synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};

one_device() -> one_device<>;
one_device(compute_options) -> one_device<>;

}  // namespace strata
