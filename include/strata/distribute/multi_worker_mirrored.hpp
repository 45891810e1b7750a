// multi_worker_mirrored: one process per worker, on one or many machines, all with the same parameters. Needs gRPC.
// needs: grpc protozero
#pragma once
#ifdef _WIN32
#error "several processes need POSIX: on Windows one process trains, with mirrored on all of its cores"
#endif
#ifndef __cpp_exceptions
#error "training in several processes catches exceptions: compile the program without -fno-exceptions"
#endif
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <strata/base/arithmetic.hpp>
#include <strata/base/meta.hpp>
#include <strata/base/text.hpp>
#include <strata/control/worker_connections.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/exchange/zero/sharding_verdict.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/program/program_text.hpp>
#include <strata/resolvers/cluster.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <strata/train/late_workers.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata {

struct multi_worker_options {
  compute_options compute{};  // of each worker
  communication_options communication{};
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until all workers have joined
  elastic_options elastic{};
};

namespace detail {
/// Options of an engine some of which all workers must share: `what_workers_agree_on()` says which, in words.
template <class O>
concept agreed_options = requires(const O& options) {
  { options.what_workers_agree_on() } -> std::same_as<std::string>;
};
template <class Options>
std::string words_of_options(const Options& options) {
  if constexpr (agreed_options<Options>)
    return options.what_workers_agree_on();
  else
    return "";
}
/// Devices that the workers of a machine divide among themselves: `of_worker(members)` are those of this one.
template <class D>
concept divided_devices = lists_devices<D> && requires(const D& devices, const cluster& members) {
  { devices.of_worker(members) } -> std::same_as<D>;
};
/// What must be the same in all workers, in words: an error quotes what differs.
template <class Program>
std::string describe_program(const char* strategy, std::uint64_t seed, const auto& compute,
                             const communication_options& communication, const typename Program::optimizer& optimizer,
                             int stage_of_zero) {
  const std::string through = communication.implementation.description;
  return text_of({strategy, stage_of_zero > 0 ? text_of({" with zero<", stage_of_zero, ">"}) : "", ", seed ", seed, ", ",
                  compute.leaves > 0 ? std::to_string(compute.leaves) : "default", " leaves, ",
                  communication.bytes_per_pack > 0 ? std::to_string(communication.bytes_per_pack) : "default", " bytes per pack",
                  communication.bf16_gradients ? " in bf16" : "", words_of_options(compute),
                  through.empty() ? "" : text_of({", ", through}), ", ", text_of_arithmetic(), ", ", text_of_optimizer(optimizer),
                  ", ", text_of_program<Program>()});
}

/// Throws strata::error if this process does not train, naming the strategy.
template <class Resolver>
cluster members_that_train(const char* strategy, Resolver resolver) {
  cluster members = resolver();
  if (!members.trains())
    throw_error({strategy, ": this process is ", to_string(members.task()), ", but only the chief and workers train"});
  return members;
}
inline control::worker_connections connect_workers(const cluster& members, const multi_worker_options& options,
                                                   const std::string& description, int places = 1) {
  return {members,
          description,
          {.communication = options.communication,
           .control = options.control,
           .elastic = options.elastic,
           .start_timeout = options.start_timeout,
           .places = places}};
}
}  // namespace detail

inline constexpr reason threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces{
    "threads and leaves are options of compute: {tf_config(), {.compute = {.leaves = 8}}}"};

inline constexpr reason they_are_options_of_communication_write_dot_communication_in_braces{
    "options of communication are written as such: {tf_config(), {.communication = {.bytes_per_pack = 4 << 20}}}"};

/// `multi_worker_mirrored{tf_config()}`: each worker runs the same program on the same data set and computes its share of every
/// global batch. Gradients are added in the tree in which one process adds them, so the parameters are those of one_device, bit
/// for bit, for any number of workers and threads (with the same number of leaves: `{.compute = {.leaves = 4}}`; by default a
/// batch has at least as many leaves as workers). A cluster of one worker needs no connections. With `{.elastic =
/// {.least_workers = 2}}` a training goes on when workers are lost, as long as the chief and that number of workers are left, and
/// a restarted worker is taken in at the end of a step; the parameters stay the same, bit for bit. The trainer's constructor
/// connects the workers. Throws strata::error for a cluster that is not valid, naming the field, and if workers train different
/// programs, naming what differs; communication_error if a worker does not join or is lost. With GPUs:
/// `multi_worker_mirrored{tf_config(), gpus()}`.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
template <class Resolver, class Backend = default_backend, class Sharding = zero<0>>
struct multi_worker_mirrored {
  using backend = Backend;
  static constexpr auto name = "multi_worker_mirrored";
  using devices_type = typename device_list<Backend>::type;
  using engine_options_type = typename engine_options<Backend>::type;
  Resolver resolver;
  multi_worker_options options{};
  [[no_unique_address]] Sharding sharding{};
  std::optional<devices_type> devices{};  // of each worker; none: the CPU with options.compute
  engine_options_type how{};              // options of its engine, if it names devices

  explicit multi_worker_mirrored(Resolver r, multi_worker_options o = {}, Sharding s = {})
      : resolver(std::move(r)), options(std::move(o)), sharding(s) {}
  template <std::same_as<devices_type> Devices>  // so that empty braces are multi_worker_options
  multi_worker_mirrored(Resolver r, Devices d, multi_worker_options o = {})
      : resolver(std::move(r)), options(std::move(o)), devices(std::move(d)) {}
  multi_worker_mirrored(Resolver r, devices_type d, engine_options_type h, multi_worker_options o = {})
      : resolver(std::move(r)), options(std::move(o)), devices(std::move(d)), how(std::move(h)) {}

  // They tell where these options belong; templates for the same reason.
  template <class Refused = compute_options>
  multi_worker_mirrored(Resolver r, compute_options) : resolver(std::move(r)) {
    static_assert(sizeof(
        detail::diagnosed<
            wrong_argument<Refused, detail::because<threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces>>>()));
  }
  template <class Refused = communication_options>
  multi_worker_mirrored(Resolver r, communication_options) : resolver(std::move(r)) {
    static_assert(
        sizeof(detail::diagnosed<
               wrong_argument<Refused, detail::because<they_are_options_of_communication_write_dot_communication_in_braces>>>()));
  }

  using fit_callback = late_workers;

  template <class Program>
  using executor =
      synchronous_executor<Program, typename Sharding::template backend<Backend>, control::worker_connections, Sharding>;
  template <class Program>
  using verdict = detail::sharding_verdict<Program, typename Sharding::template backend<Backend>, Sharding>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    if (Sharding::stage > 0 && options.elastic.least_workers > 0) throw_error(zero_is_not_elastic);
    const cluster members = detail::members_that_train(name, resolver);
    const engine_options_type compute = options_of(members);
    control::worker_connections processes = detail::connect_workers(
        members, options,
        detail::describe_program<Program>(name, seed, compute, options.communication, optimizer, Sharding::stage));
    return {std::move(optimizer), seed, compute, std::move(processes), options.communication};
  }

 private:
  engine_options_type options_of([[maybe_unused]] const cluster& members) const {
    if (devices && options.compute != compute_options{})
      throw_error(
          "multi_worker_mirrored: options.compute are those of workers without a list of devices; with one, write their options "
          "after the list: {tf_config(), gpus(), {.leaves = 8}}");
    if constexpr (detail::divided_devices<devices_type>) {
      return devices.value_or(devices_type()).of_worker(members).with(how);
    } else {
      return devices ? devices->with(how) : options.compute;
    }
  }
};

inline constexpr reason multi_worker_mirrored_takes_a_resolver_first_such_as_tf_config{
    "multi_worker_mirrored takes a resolver first, such as tf_config()"};
inline constexpr reason after_the_resolver_come_options_and_zero_or_devices_and_options{
    "multi_worker_mirrored takes a resolver, then options and zero, or devices and options: {tf_config(), {}, zero<1>{}}, "
    "{tf_config(), gpus()}"};
inline constexpr reason devices_are_a_list_such_as_gpus_which_comes_after_the_resolver{
    "devices are a list, such as gpus() or cpus(4), and come after the resolver: {tf_config(), gpus()}"};
inline constexpr reason zero_comes_after_options_which_may_be_empty_braces{
    "zero comes after options, which may be empty braces: {tf_config(), {}, zero<1>{}}"};
inline constexpr reason zero_is_for_processes_that_train_on_their_cpus{
    "zero is for processes that train on their CPUs: {tf_config(), {}, zero<1>{}}"};

template <class Given, const reason& Why, class Backend, class Sharding>
struct multi_worker_mirrored<detail::refused_arguments<Given, Why>, Backend, Sharding> : detail::refusing<mirrored<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<mirrored<>>::refusing;
  explicit multi_worker_mirrored(const auto& resolver, const multi_worker_options&, const auto&...)
      : detail::refusing<mirrored<>>(resolver) {}
  explicit multi_worker_mirrored(const auto& resolver, const auto&, const multi_worker_options&, const auto&...)
      : detail::refusing<mirrored<>>(resolver) {}
};
/// Of what is no resolver.
template <class Resolver, class Backend, class Sharding>
  requires(!cluster_resolver<Resolver>)
struct multi_worker_mirrored<Resolver, Backend, Sharding> : detail::refusing<mirrored<>> {
  static_assert(sizeof(detail::diagnosed<typename detail::resolver_verdict<Resolver>::type>()));
  using detail::refusing<mirrored<>>::refusing;
  explicit multi_worker_mirrored(const auto& resolver, const multi_worker_options&, const auto&...)
      : detail::refusing<mirrored<>>(resolver) {}
};
namespace detail {
template <class T>
concept worker_options = std::is_convertible_v<T, multi_worker_options>;

/// Whether multi_worker_mirrored takes these after the resolver.
template <class... Rest>
inline constexpr bool taken_by_workers = sizeof...(Rest) == 0;
template <class A>
inline constexpr bool taken_by_workers<A> = worker_options<A> || lists_devices<A>;
template <class A, class B>
inline constexpr bool taken_by_workers<A, B> =
    (worker_options<A> && is_zero<B>) || (lists_devices<A> && (worker_options<B> || options_fit_devices<A, B>));
template <lists_devices A, class B, worker_options C>
inline constexpr bool taken_by_workers<A, B, C> = options_fit_devices<A, B>;

/// Whether it is a number, or something for another place than the first.
template <class R>
concept follows_resolver = is_zero<R> || lists_devices<R> || worker_options<R> || std::is_arithmetic_v<R>;

template <class T>
concept names_gpu_or_cpu = lists_devices<T> || requires { typename device_list<typename T::backend>::type; };
template <class... Rest>
constexpr const reason& why_not_after_resolver() {
  constexpr bool devices = (names_gpu_or_cpu<Rest> || ...), zeros = (is_zero<Rest> || ...);
  if constexpr (devices && zeros)
    return zero_is_for_processes_that_train_on_their_cpus;
  else if constexpr (zeros)
    return zero_comes_after_options_which_may_be_empty_braces;
  else if constexpr (devices)
    return devices_are_a_list_such_as_gpus_which_comes_after_the_resolver;
  else
    return after_the_resolver_come_options_and_zero_or_devices_and_options;
}
template <class R, class... Rest>
constexpr const reason& why_not_workers() {
  if constexpr (follows_resolver<R>)
    return multi_worker_mirrored_takes_a_resolver_first_such_as_tf_config;
  else
    return why_not_after_resolver<Rest...>();
}
}  // namespace detail

multi_worker_mirrored() -> multi_worker_mirrored<
    detail::refused_arguments<detail::nothing, multi_worker_mirrored_takes_a_resolver_first_such_as_tf_config>>;
template <class R>
multi_worker_mirrored(R) -> multi_worker_mirrored<R>;
template <detail::follows_resolver R>
multi_worker_mirrored(R)
    -> multi_worker_mirrored<detail::refused_arguments<R, multi_worker_mirrored_takes_a_resolver_first_such_as_tf_config>>;
template <class R>
multi_worker_mirrored(R, multi_worker_options) -> multi_worker_mirrored<R>;
template <class R, int Stage>
multi_worker_mirrored(R, multi_worker_options, zero<Stage>) -> multi_worker_mirrored<R, default_backend, zero<Stage>>;
template <class R, lists_devices D>
multi_worker_mirrored(R, D) -> multi_worker_mirrored<R, typename D::backend>;
template <class R, lists_devices D>
multi_worker_mirrored(R, D, multi_worker_options) -> multi_worker_mirrored<R, typename D::backend>;
template <class R, lists_devices D>
multi_worker_mirrored(R, D, typename engine_options<typename D::backend>::type, multi_worker_options = {})
    -> multi_worker_mirrored<R, typename D::backend>;
template <class R, class... Rest>
  requires(detail::follows_resolver<R> || !detail::taken_by_workers<Rest...>)
multi_worker_mirrored(R, Rest...)
    -> multi_worker_mirrored<detail::refused_arguments<type_list<R, Rest...>, detail::why_not_workers<R, Rest...>()>>;
// The same where braces stand for options.
template <class R, class Given>
  requires(!detail::is_zero<Given>)
multi_worker_mirrored(R, multi_worker_options, Given)
    -> multi_worker_mirrored<detail::refused_arguments<Given, detail::why_not_after_resolver<Given>()>>;
template <class R, class Given, class Another, class... Rest>
multi_worker_mirrored(R, multi_worker_options, Given, Another, Rest...)
    -> multi_worker_mirrored<detail::refused_arguments<Given, detail::why_not_after_resolver<Given, Another, Rest...>()>>;
template <class R, lists_devices D, class Given, class... Rest>
multi_worker_mirrored(R, D, multi_worker_options, Given, Rest...)
    -> multi_worker_mirrored<detail::refused_arguments<Given, detail::why_not_after_resolver<D, Given, Rest...>()>>;

}  // namespace strata
