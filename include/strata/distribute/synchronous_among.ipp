// The arguments that synchronous_among refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order{
    "empty braces are default options: synchronous_among{processes, {}, {}, zero<1>{}}"};
}  // namespace reasons

template <class Given, class Why, class Backend, class Sharding>
struct synchronous_among<wrong_argument<Given, Why>, Backend, Sharding> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
};
template <class... Given>
synchronous_among(Given...) -> synchronous_among<detail::refused_with<
    core::type_list<Given...>,
    reasons::synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order>>;

}  // namespace strata
