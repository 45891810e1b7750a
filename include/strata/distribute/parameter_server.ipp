// The arguments that parameter_server refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason parameter_server_takes_a_resolver_such_as_tf_config_and_parameter_server_options{
    "parameter_server{tf_config(), {.staleness = synchronous{}}}"};
}  // namespace reasons

template <class Given, class Why>
struct parameter_server<wrong_argument<Given, Why>> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
};
template <class... Given>
parameter_server(Given...) -> parameter_server<detail::refused_with<
    core::type_list<Given...>, reasons::parameter_server_takes_a_resolver_such_as_tf_config_and_parameter_server_options>>;

}  // namespace strata
