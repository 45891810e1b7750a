// multi_worker_mirrored: one process per worker, on one or many machines, all with the same parameters. Needs OpenSSL and
// protozero.
// needs: openssl protozero
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
#include <strata/resolvers/any_resolver.hpp>
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
/// What follows the resolver in multi_worker_mirrored. The constructors are not defined.
template <class Backend, class Sharding>
struct after_resolver {
  after_resolver(multi_worker_options, Sharding = {});
  after_resolver(typename device_list<Backend>::type, typename engine_options<Backend>::type = {}, multi_worker_options = {});
};
/// Throws strata_error if this process does not train, naming the strategy.
inline cluster members_that_train(const char* strategy, const any_resolver& resolver) {
  cluster members = resolver();
  if (!members.trains())
    throw_error({strategy, ": this process is ", to_string(members.task()), ", but only the chief and workers train"});
  return members;
}
/// Connects this worker with the others, if they have the same strategy, seed, options and program: an error quotes what differs.
/// Of the options of an engine, those that workers must share are `what_workers_agree_on()`, in words. places: of a group.
template <class Program>
control::worker_connections connect_workers(const cluster& members, const multi_worker_options& options,
                                            const std::string& strategy, std::uint64_t seed, const auto& compute,
                                            const typename Program::optimizer& optimizer, int places = 1) {
  const communication_options& communication = options.communication;
  const std::string through = communication.implementation.description;
  std::string on;
  if constexpr (requires { compute.what_workers_agree_on(); }) on = compute.what_workers_agree_on();
  return {members,
          text_of({strategy, ", seed ", seed, ", ", compute.leaves > 0 ? std::to_string(compute.leaves) : "default", " leaves, ",
                   communication.bytes_per_pack > 0 ? std::to_string(communication.bytes_per_pack) : "default", " bytes per pack",
                   communication.bf16_gradients ? " in bf16" : "", on, through.empty() ? "" : text_of({", ", through}), ", ",
                   text_of_arithmetic(), ", ", text_of_optimizer(optimizer), ", ", text_of_program<Program>()}),
          {.communication = communication,
           .control = options.control,
           .elastic = options.elastic,
           .start_timeout = options.start_timeout,
           .places = places}};
}
}  // namespace detail

/// `multi_worker_mirrored{tf_config()}`: each worker runs the same program on the same data set and computes its share of every
/// global batch. Gradients are added in the tree in which one process adds them, so the parameters are those of one_device, bit
/// for bit, for any number of workers and threads (with the same number of leaves: `{.compute = {.leaves = 4}}`; by default a
/// batch has at least as many leaves as workers). A cluster of one worker needs no connections. With `{.elastic =
/// {.least_workers = 2}}` a training goes on when workers are lost, as long as the chief and that number of workers are left, and
/// a restarted worker is taken in at the end of a step; the parameters stay the same, bit for bit. The trainer's constructor
/// connects the workers. Throws strata_error for a cluster that is not valid, naming the field, and if workers train
/// different programs, naming what differs; communication_error if a worker does not join or is lost. With GPUs:
/// `multi_worker_mirrored{tf_config(), gpus()}`.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
template <class Backend = core::default_backend, class Sharding = zero<0>>
struct multi_worker_mirrored {
  using backend = Backend;
  static constexpr auto name = "multi_worker_mirrored";
  using devices_type = typename core::device_list<Backend>::type;
  using engine_options_type = typename core::engine_options<Backend>::type;
  any_resolver resolver = detail::no_resolver;
  multi_worker_options options{};
  std::optional<devices_type> devices{};  // of each worker; none: the CPU with options.compute
  engine_options_type how{};              // options of its engine, if it names devices

  explicit multi_worker_mirrored(any_resolver r, multi_worker_options o = {}, Sharding = {})
      : resolver(std::move(r)), options(std::move(o)) {}
  template <std::same_as<devices_type> Devices>  // so that empty braces are multi_worker_options
  multi_worker_mirrored(any_resolver r, Devices d, engine_options_type h = {}, multi_worker_options o = {})
      : resolver(std::move(r)), options(std::move(o)), devices(std::move(d)), how(std::move(h)) {}
  // Wrong arguments, also after options in braces.
  template <class R, class... Given>
    requires(sizeof...(Given) > 0 && !std::is_constructible_v<detail::after_resolver<Backend, Sharding>, Given...>)
  multi_worker_mirrored(const R&, const Given&...) {
    static_assert(
        detail::diagnosed<detail::refused_with<
            reasons::multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options, R, Given...>>[0]);
  }
  template <class R, class... Given>
    requires(sizeof...(Given) > 0 &&
             !std::is_constructible_v<detail::after_resolver<Backend, Sharding>, multi_worker_options, Given...>)
  multi_worker_mirrored(const R&, const multi_worker_options&, const Given&...) {
    static_assert(
        detail::diagnosed<detail::refused_with<
            reasons::multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options, R, Given...>>[0]);
  }
  template <class Why = detail::because<reasons::threads_and_leaves_are_options_of_compute_write_dot_compute_in_braces>>
  multi_worker_mirrored(const any_resolver&, const compute_options&) {
    static_assert(detail::diagnosed<wrong_argument<compute_options, Why>>[0]);
  }
  template <class Why = detail::because<reasons::they_are_options_of_communication_write_dot_communication_in_braces>>
  multi_worker_mirrored(const any_resolver&, const communication_options&) {
    static_assert(detail::diagnosed<wrong_argument<communication_options, Why>>[0]);
  }

  using fit_callback = core::late_workers;

  template <class Program>
  using executor =
      core::synchronous_executor<Program, typename Sharding::template backend<Backend>, control::worker_connections, Sharding>;
  template <class Program>
  using verdict = detail::sharding_verdict<Program, typename Sharding::template backend<Backend>, Sharding>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    if (Sharding::stage > 0 && options.elastic.least_workers > 0) throw_error(core::zero_is_not_elastic);
    const cluster members = detail::members_that_train(name, resolver);
    const engine_options_type compute = options_of(members);
    auto processes = detail::connect_workers<Program>(
        members, options, Sharding::stage > 0 ? detail::text_of({name, " with zero<", Sharding::stage, ">"}) : name, seed,
        compute, optimizer);
    return {std::move(optimizer), seed, compute, std::move(processes), options.communication};
  }

 private:
  engine_options_type options_of([[maybe_unused]] const cluster& members) const {
    if (devices && options.compute != compute_options{})
      throw_error(
          "multi_worker_mirrored: options.compute are those of workers without a list of devices; with one, write their options "
          "after the list: {tf_config(), gpus(), {.leaves = 8}}");
    if constexpr (requires { devices->of_worker(members); })  // devices of a machine that its workers divide
      return devices.value_or(devices_type()).of_worker(members).with(how);
    else
      return devices ? devices->with(how) : options.compute;
  }
};

template <class R>
multi_worker_mirrored(R) -> multi_worker_mirrored<>;
template <class R>
multi_worker_mirrored(R, multi_worker_options) -> multi_worker_mirrored<>;
template <class R, int Stage>
multi_worker_mirrored(R, multi_worker_options, zero<Stage>) -> multi_worker_mirrored<core::default_backend, zero<Stage>>;
template <class R, core::lists_devices D>
multi_worker_mirrored(R, D, typename core::engine_options<typename D::backend>::type = {}, multi_worker_options = {})
    -> multi_worker_mirrored<typename D::backend>;

}  // namespace strata
