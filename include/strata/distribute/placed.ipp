// The arguments that placed refuses.
#pragma once

namespace strata {

template <class Given, class Why, class Backend>
struct placed<wrong_argument<Given, Why>, Backend> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
};
template <class... Given>
placed(Given...) -> placed<detail::refused_with<reasons::placed_takes_thread_groups_or_gpus_and_then_options, Given...>>;

}  // namespace strata
