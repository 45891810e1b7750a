// The arguments that one_device refuses.
#pragma once

namespace strata {

namespace reasons {
inline constexpr reason one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options{
    "one_device{{.threads = 2}}, one_device{gpu(0), {.leaves = 2}}, one_device<fits_in<8_MiB>>{}; mirrored takes several "
    "devices, multi_worker_mirrored takes zero"};
}  // namespace reasons

template <class Given, class Why>
struct one_device<wrong_argument<Given, Why>> : detail::refused_strategy {
  static_assert(detail::diagnosed<wrong_argument<Given, Why>>[0]);
  using detail::refused_strategy::refused_strategy;
  explicit one_device(const compute_options&, const auto&...) : detail::refused_strategy(0) {}
};
template <class... Given>
one_device(Given...)
    -> one_device<detail::refused_with<core::type_list<Given...>,
                                       reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>>;
template <class... Given>  // after options in braces
one_device(compute_options, Given...)
    -> one_device<detail::refused_with<core::type_list<Given...>,
                                       reasons::one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>>;

}  // namespace strata
