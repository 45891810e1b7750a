// mirrored: several devices of one machine, each with a part of every batch.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/device_list.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// `count` cores as devices; all cores of the machine if it is left out.
struct cpus {
  using backend = default_backend;
  int count = 0;

  constexpr cpus() = default;
  /// Throws strata::error if there is none.
  constexpr explicit cpus(int n) : count(n) {
    if (n < 1) throw_error({"cpus(", n, "): at least one device is needed"});
  }
  constexpr compute_options with(compute_options options) const {
    options.threads = count;
    return options;
  }
};

template <>
struct device_list<default_backend> {
  using type = cpus;
};

namespace detail {
template <class Backend>
struct replicas {
  using backend = Backend;
  typename device_list<Backend>::type devices;
  typename engine_options<Backend>::type options{};

  template <class Program>
  using executor = synchronous_executor<Program, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.with(options)};
  }
};
}  // namespace detail

/// `mirrored{cpus(4)}`: 4 threads share the leaves of each batch and add their gradients in the tree that one thread adds them
/// in, so the results are those of one_device, bit for bit. A replica is a thread here: weights are not copied, they are read by
/// all, and each thread updates a part of them. https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
template <class Backend = default_backend>
struct mirrored : detail::replicas<Backend> {
  static constexpr auto name = "mirrored";

  explicit mirrored(typename device_list<Backend>::type devices = {}, typename engine_options<Backend>::type options = {})
      : detail::replicas<Backend>{devices, options} {}
};

inline constexpr reason mirrored_divides_batches_only_and_mesh_combines_it_with_other_divisions{
    "mirrored divides batches and takes a backend in angle brackets: mesh<data_parallel<2>, tensor_parallel<2, rules>> divides "
    "layers, too"};
template <class Strategy>
  requires(!requires { typename device_list<Strategy>::type; })
struct mirrored<Strategy> : detail::refusing<mirrored<>> {
  static_assert(sizeof(
      detail::diagnosed<
          wrong_argument<Strategy, detail::because<mirrored_divides_batches_only_and_mesh_combines_it_with_other_divisions>>>()));
  using detail::refusing<mirrored<>>::refusing;
};

inline constexpr reason mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4{
    "mirrored takes a list of devices, such as gpus() or cpus(4)"};
inline constexpr reason after_its_devices_mirrored_takes_options_of_their_backend{
    "after its devices mirrored takes options of their backend: compute_options with cpus, cuda_options with gpus"};
inline constexpr reason mirrored_needs_no_zero_because_the_threads_of_a_process_share_one_copy_of_everything{
    "mirrored needs no zero: the threads of a process share one copy of everything. multi_worker_mirrored takes it"};

inline constexpr reason zero_divides_state_among_processes_on_CPUs_and_each_GPU_keeps_a_copy{
    "zero divides state among processes that compute on CPUs; each GPU of mirrored keeps a copy of everything"};

template <class Given, const reason& Why>
struct mirrored<detail::refused_arguments<Given, Why>> : detail::refusing<mirrored<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<mirrored<>>::refusing;
  mirrored(const auto& given, const compute_options&, const auto&...) : detail::refusing<mirrored<>>(given) {}
};
namespace detail {
template <class D, class... Options>
inline constexpr bool options_fit_devices = sizeof...(Options) == 0;
template <lists_devices D, class Options>
inline constexpr bool options_fit_devices<D, Options> =
    std::is_convertible_v<Options, typename engine_options<typename D::backend>::type> &&
    !std::is_same_v<Options, typename single_device<typename D::backend>::type>;  // one more device is no option
template <class D, class Given>
inline constexpr const reason& why_not_after_devices =
    !is_zero<Given> ? after_its_devices_mirrored_takes_options_of_their_backend
    : device_of<typename D::backend>::is_host
        ? mirrored_needs_no_zero_because_the_threads_of_a_process_share_one_copy_of_everything
        : zero_divides_state_among_processes_on_CPUs_and_each_GPU_keeps_a_copy;
}  // namespace detail

mirrored() -> mirrored<>;
template <lists_devices D>
mirrored(D) -> mirrored<typename D::backend>;
template <lists_devices D>
mirrored(D, typename engine_options<typename D::backend>::type) -> mirrored<typename D::backend>;
template <class Given, class... Options>
  requires(!lists_devices<Given>)
mirrored(Given, Options...)
    -> mirrored<detail::refused_arguments<Given, mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4>>;
template <lists_devices D, class Given, class... Options>
  requires(!detail::options_fit_devices<D, Given, Options...>)
mirrored(D, Given, Options...) -> mirrored<detail::refused_arguments<Given, detail::why_not_after_devices<D, Given>>>;
// The same where braces stand for options.
template <lists_devices D, class Given, class... Options>
mirrored(D, typename engine_options<typename D::backend>::type, Given, Options...)
    -> mirrored<detail::refused_arguments<Given, detail::why_not_after_devices<D, Given>>>;

/// Variables in one place, computation by several devices. On CPUs memory is one place: this is mirrored by another name.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
template <class Backend = default_backend>
struct central_storage : detail::replicas<Backend> {
  static constexpr auto name = "central_storage";

  explicit central_storage(typename device_list<Backend>::type devices = {}, typename engine_options<Backend>::type options = {})
      : detail::replicas<Backend>{devices, options} {}
};

inline constexpr reason central_storage_takes_cpus_and_gpus_are_for_mirrored{"central_storage takes cpus; gpus are for mirrored"};
inline constexpr reason after_cpus_central_storage_takes_compute_options{"after cpus central_storage takes compute_options"};

template <class Given, const reason& Why>
struct central_storage<detail::refused_arguments<Given, Why>> : detail::refusing<central_storage<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<central_storage<>>::refusing;
};

central_storage() -> central_storage<>;
central_storage(cpus) -> central_storage<>;
central_storage(cpus, compute_options) -> central_storage<>;
template <class Given, class... Options>
  requires(!std::is_same_v<Given, cpus>)
central_storage(Given, Options...)
    -> central_storage<detail::refused_arguments<Given, central_storage_takes_cpus_and_gpus_are_for_mirrored>>;
template <class Given, class... Options>
  requires(!detail::options_fit_devices<cpus, Given, Options...>)
central_storage(cpus, Given, Options...)
    -> central_storage<detail::refused_arguments<Given, after_cpus_central_storage_takes_compute_options>>;

}  // namespace strata
