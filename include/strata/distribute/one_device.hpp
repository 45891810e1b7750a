// one_device: one device of this machine, such as all of its cores.
#pragma once
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

inline constexpr reason one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options{
    "one_device takes compute_options, or one device and its options, such as gpu(0) and cuda_options; mirrored takes several "
    "devices"};
inline constexpr reason zero_divides_state_among_processes_give_it_to_multi_worker_mirrored{
    "zero divides state among processes: multi_worker_mirrored{tf_config(), {}, zero<1>{}}"};
inline constexpr reason a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets{
    "a backend is a template argument: one_device<fits_in<8_MiB>>{}"};

template <class Given, const reason& Why>
struct one_device<detail::refused_arguments<Given, Why>> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
  explicit one_device(const compute_options&, const auto&...) : detail::refusing<one_device<>>(0) {}
};
namespace detail {
template <class Given>
inline constexpr const reason& why_not_one_device =
    names_backend<Given> ? a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets
    : is_zero<Given>     ? zero_divides_state_among_processes_give_it_to_multi_worker_mirrored
                         : one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options;
}  // namespace detail

one_device() -> one_device<>;
one_device(compute_options) -> one_device<>;
template <class Given, class... More>
one_device(Given, More...) -> one_device<detail::refused_arguments<Given, detail::why_not_one_device<Given>>>;
// The same after options in braces.
template <class Given, class... More>
one_device(compute_options, Given, More...) -> one_device<detail::refused_arguments<Given, detail::why_not_one_device<Given>>>;

}  // namespace strata
