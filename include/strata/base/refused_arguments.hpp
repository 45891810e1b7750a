// Strategies with wrong arguments: a constructor refuses these with one diagnostic; otherwise a compiler would list all
// constructors.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>

namespace strata {

namespace reasons {
inline constexpr reason one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options{
    "one_device{{.threads = 2}}, one_device{gpu(0), {.leaves = 2}}, one_device<fits_in<8_MiB>>{}; mirrored takes several "
    "devices, multi_worker_mirrored takes zero"};
inline constexpr reason mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend{
    "mirrored{cpus(4)}, mirrored{gpus(), {.leaves = 8}}; multi_worker_mirrored takes zero, mesh combines divisions"};
inline constexpr reason placed_takes_thread_groups_or_gpus_and_then_options{
    "placed{thread_groups<2>{}}, placed{gpu(0), gpu(1)}; compute_options or cuda_options may follow"};
inline constexpr reason synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order{
    "empty braces are default options: synchronous_among{processes, {}, {}, zero<1>{}}"};
inline constexpr reason threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces{
    "{tf_config(), {.compute = {.leaves = 8}}}"};
inline constexpr reason they_are_options_of_communication_write_dot_communication_in_braces{
    "{tf_config(), {.communication = {.bytes_per_pack = 4 << 20}}}"};
inline constexpr reason multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options{
    "{tf_config(), {}, zero<1>{}}, {tf_config(), gpus(), {.leaves = 8}}"};
inline constexpr reason parameter_server_takes_a_resolver_such_as_tf_config_and_parameter_server_options{
    "parameter_server{tf_config(), {.staleness = synchronous{}}}"};
}  // namespace reasons

namespace detail {
/// The diagnostic about arguments that a strategy refuses.
template <const reason& Why, class... Given>
using refused_with = wrong_argument<core::type_list<Given...>, because<Why>>;

/// The base class of a strategy that emits a diagnostic itself: it accepts any arguments, and a trainer emits no second one.
struct refused_strategy {
  static constexpr auto name = "refused_strategy";
  template <class>
  using executor = void;
  template <class... Arguments>
  explicit refused_strategy(const Arguments&...) {}
};

/// A backend, such as fits_in<8_MiB>, which is a template argument of strategies.
template <class T>
concept names_backend = requires { T::name; } && (requires { typename T::device; } || requires { typename T::base; });
}  // namespace detail

}  // namespace strata
