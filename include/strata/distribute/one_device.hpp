// one_device: one device of this machine, such as all of its cores.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/device_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <utility>

namespace strata {

/// The default strategy. `one_device{{.threads = 2}}` is the CPU with two threads; a backend with devices of its own, such as
/// `one_device{gpu(0), {.leaves = 2}}`, adds deduction guides for them.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
template <class Backend = default_backend>
struct one_device {
  using backend = Backend;
  static constexpr auto name = "one_device";
  using options_type = typename engine_options<Backend>::type;
  options_type options{};

  constexpr one_device(options_type given = {}) : options(std::move(given)) {}
  constexpr one_device(const typename single_device<Backend>::type& device, options_type given)
      : options(device.with(std::move(given))) {}

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};

one_device() -> one_device<>;
one_device(compute_options) -> one_device<>;

namespace reasons {
inline constexpr reason one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options{
    "one_device{{.threads = 2}}, one_device{gpu(0), {.leaves = 2}}, one_device<fits_in<8_MiB>>{}; mirrored takes several "
    "devices, "
    "multi_worker_mirrored takes zero"};
}  // namespace reasons

template <class Given, class Why>
struct one_device<wrong_argument<Given, Why>> : detail::refusing<one_device<>> {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refusing<one_device<>>::refusing;
  explicit one_device(const compute_options&, const auto&...) : detail::refusing<one_device<>>(0) {}
};
template <class... Given>
one_device(Given...)
    -> one_device<detail::refused_with<type_list<Given...>,
                                       reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>>;
template <class... Given>  // after options in braces
one_device(compute_options, Given...)
    -> one_device<detail::refused_with<type_list<Given...>,
                                       reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>>;

}  // namespace strata
