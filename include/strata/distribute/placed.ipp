// The arguments that placed refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason placed_takes_thread_groups_or_gpus_and_then_options{
    "placed{thread_groups<2>{}}, placed{gpu(0), gpu(1)}; compute_options or cuda_options may follow"};
}  // namespace reasons

template <class Given, class Why, class Backend>
struct placed<wrong_argument<Given, Why>, Backend> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
};
template <class... Given>
placed(Given...)
    -> placed<detail::refused_with<core::type_list<Given...>, reasons::placed_takes_thread_groups_or_gpus_and_then_options>>;

}  // namespace strata
