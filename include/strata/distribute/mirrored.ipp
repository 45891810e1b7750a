// The arguments that mirrored refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend{
    "mirrored{cpus(4)}, mirrored{gpus(), {.leaves = 8}}; multi_worker_mirrored takes zero, mesh combines divisions"};
}  // namespace reasons

template <class Given, class Why>
struct mirrored<wrong_argument<Given, Why>> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
};
namespace detail {
/// Whether mirrored takes these: one more device is no option, although options can be made of it.
template <class...>
inline constexpr bool are_devices_and_options = false;
template <lists_devices D, class Options>
inline constexpr bool are_devices_and_options<D, Options> =
    std::is_convertible_v<Options, typename engine_options<typename D::backend>::type> &&
    !std::is_same_v<Options, typename single_device<typename D::backend>::type>;
}  // namespace detail
template <class... Given>
  requires(!detail::are_devices_and_options<Given...>)
mirrored(Given...) -> mirrored<detail::refused_with<
    core::type_list<Given...>, reasons::mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>>;

}  // namespace strata
