// The arguments that multi_worker_mirrored refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces{
    "{tf_config(), {.compute = {.leaves = 8}}}"};
inline constexpr reason they_are_options_of_communication_write_dot_communication_in_braces{
    "{tf_config(), {.communication = {.bytes_per_pack = 4 << 20}}}"};
inline constexpr reason multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options{
    "{tf_config(), {}, zero<1>{}}, {tf_config(), gpus(), {.leaves = 8}}"};
}  // namespace reasons

template <class Given, class Why, class Sharding>
struct multi_worker_mirrored<wrong_argument<Given, Why>, Sharding> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
  multi_worker_mirrored(const auto& resolver, const compute_options&) : detail::refused_strategy(resolver) {}
  multi_worker_mirrored(const auto& resolver, const communication_options&) : detail::refused_strategy(resolver) {}
  multi_worker_mirrored(const auto& resolver, const multi_worker_options&, const auto&...) : detail::refused_strategy(resolver) {}
};
namespace detail {
template <class... Given>
using refused_by_workers =
    refused_with<type_list<Given...>,
                 reasons::multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options>;
}  // namespace detail
multi_worker_mirrored(any_resolver, compute_options) -> multi_worker_mirrored<
    detail::refused_with<compute_options, reasons::threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces>>;
multi_worker_mirrored(any_resolver, communication_options) -> multi_worker_mirrored<
    detail::refused_with<communication_options, reasons::they_are_options_of_communication_write_dot_communication_in_braces>>;
template <class... Given>
multi_worker_mirrored(Given...) -> multi_worker_mirrored<detail::refused_by_workers<Given...>>;
template <class R, class... Given>  // after options in braces
multi_worker_mirrored(R, multi_worker_options, Given...) -> multi_worker_mirrored<detail::refused_by_workers<R, Given...>>;

}  // namespace strata
