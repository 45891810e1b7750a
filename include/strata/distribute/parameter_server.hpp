// parameter_server: workers compute gradients, servers keep the parameters. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#ifdef _WIN32
#error "several processes need POSIX: on Windows one process trains, with mirrored on all of its cores"
#endif
#ifndef __cpp_exceptions
#error "training in several processes catches exceptions: compile the program without -fno-exceptions"
#endif
#include <chrono>
#include <cstdint>
#include <iostream>
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/base/text.hpp>
#include <strata/parameter_server/parameter_client.hpp>
#include <strata/parameter_server/parameter_service.hpp>
#include <strata/parameter_server/staleness.hpp>
#include <strata/program/program_text.hpp>
#include <strata/resolvers/any_resolver.hpp>
#include <strata/resolvers/cluster.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

struct parameter_server_options {
  compute_options compute{};  // of each worker
  staleness_policy staleness = asynchronous{};
  strata::partitioner partitioner{};  // left out: min_size_partitioner with at most one shard per server
  control_options control{};
  snapshot_options snapshots{};  // of each server; servers may share a folder
  std::chrono::milliseconds start_timeout =
      std::chrono::minutes(5);  // of a worker: until all servers answer; of a server: until a worker joins
  std::chrono::milliseconds timeout = std::chrono::seconds(60);   // how long a worker waits for others in a step
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);  // how long a server may be out of reach
};

/// `parameter_server{tf_config()}`: the chief and the workers run fit, each on its own batches (`data::shard`). The processes
/// with role ps keep the parameters and the optimizer's state, divided into shards. Workers push the gradient of each batch and
/// get the newest weights back, as in TensorFlow's between-graph replication. History, validation and predictions are those of
/// each worker, with its weights. With `{.staleness = synchronous{}}` all workers read the same global batches, and the
/// parameters are those of one_device, bit for bit, with the same number of leaves. In a ps, `fit` serves until the chief's
/// trainer is destroyed and no worker trains any more, and returns an empty history. `if (model.serve()) return 0;` does the same
/// before the program loads data or asks for its rank, which a ps does not have. Throws strata_error for a cluster that is not
/// valid, naming the field, for another program than that of the servers, and for an optimizer with global_clipnorm;
/// communication_error, naming the server, if a server does not answer or is lost.
/// https://www.tensorflow.org/api_docs/python/tf/compat/v1/distribute/experimental/ParameterServerStrategy
template <class Backend = core::default_backend>
struct parameter_server {
  using backend = Backend;
  static constexpr auto name = "parameter_server";
  any_resolver resolver = detail::no_resolver;
  parameter_server_options options;

  explicit parameter_server(any_resolver r = {}, parameter_server_options o = {})
      : resolver(std::move(r)), options(std::move(o)) {}
  template <class R, class First, class... Given>
    requires(!std::is_same_v<First, parameter_server_options> || sizeof...(Given) > 0)
  parameter_server(const R&, const First&, const Given&...) {
    static_assert(
        detail::diagnosed<detail::refused_with<
            reasons::parameter_server_takes_a_resolver_such_as_tf_config_and_parameter_server_options, R, First, Given...>>[0]);
  }

  template <class Program>
  using executor = core::parameter_executor<Program, core::parameter_client, Backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    using T = typename Program::value_type;
    static constexpr const auto& layout = core::layout_of_program<Program>;
    const cluster members = resolver();
    executor<Program>::check(optimizer);
    if (const auto* bounded = std::get_if<bounded_staleness>(&options.staleness); bounded && bounded->steps < 0)
      throw_error({"parameter_server: bounded_staleness of ", bounded->steps, " steps"});
    if (core::is_synchronous(options.staleness) && members.size() > core::max_leaves)
      throw_error({"parameter_server: ", members.size(), " workers cannot share the ", core::max_leaves,
                   " leaves that a batch has at most"});
    const int servers = members.count(role::ps);
    const strata::partitioner how =
        options.partitioner ? options.partitioner : min_size_partitioner{.max_shards = std::max(1, servers)};
    static constexpr auto trained = core::trained_ranges(layout);
    const bool whole = core::takes_norms(optimizer);
    std::vector<core::parameter_shard> shards = whole ? core::partition_between(trained.span(), sizeof(T), how, servers)
                                                      : detail::partition(layout.trainable, sizeof(T), how, servers);
    const std::string program =
        describe<Program>(members, seed, detail::text_of({shards.size(), whole ? " shards of whole parameters" : " shards"}));
    const std::string agreement =
        detail::text_of({program, ", ", detail::text_of_arithmetic(), ", ", detail::text_of_optimizer(optimizer)});
    constexpr std::size_t metric_sums_width = core::batch_gradient<Program, Backend>::metric_sums_width;

    if (members.task().type == role::ps)
      return {optimizer, [self = *this, optimizer, members, shards, program, agreement] {
                self.template serve<Program>(optimizer, members, shards, program, agreement);
              }};
    if (!members.trains())
      throw_error({"parameter_server: this process is ", to_string(members.task()), ", which neither trains nor serves"});
    std::vector<core::endpoint> addresses;
    for (int s = 0; s < servers; ++s) addresses.push_back(address_of(members, s));
    core::parameter_client<T> client(addresses, std::move(shards),
                                     {.worker = members.rank(),
                                      .workers = members.size(),
                                      .synchronous = core::is_synchronous(options.staleness),
                                      .metric_sums_width = metric_sums_width,
                                      .run = members.run_id(),
                                      .program = agreement,
                                      .generation = members.generation(),
                                      .control = options.control,
                                      .start_timeout = options.start_timeout,
                                      .timeout = options.timeout,
                                      .retry_for = options.retry_for,
                                      .tables = tables_of<Program>()});
    return {std::move(optimizer), seed, std::move(client), options.compute};
  }

 private:
  static core::endpoint address_of(const cluster& members, int server) {
    const cluster_task task{role::ps, server};
    const auto& address = members.address(task);
    if (!address)
      throw_error({"parameter_server: the address of ", to_string(task),
                   " is unknown: use a resolver that knows all addresses, such as tf_config()"});
    return *address;
  }

  template <class Program>
  static std::vector<core::row_table> tables_of() {
    constexpr const auto& tables = core::travelling_tables<Program>::value;
    return {tables.begin(), tables.end()};
  }

  template <class Program>
  void serve(typename Program::optimizer optimizer, const cluster& members, const std::vector<core::parameter_shard>& shards,
             const std::string& program, const std::string& agreement) const {
    using T = typename Program::value_type;
    static constexpr auto trained = core::trained_ranges(core::layout_of_program<Program>);
    const std::string run = detail::text_of({members.run_id(), ' ', members.generation()});
    std::vector<std::string> workers;
    for (int r = 0; r < members.size(); ++r) workers.push_back(to_string(members.task_of_rank(r)));
    core::parameter_store<T, typename Program::optimizer> store(
        std::move(optimizer), trained.span(), shards,
        {.staleness = options.staleness,
         .workers = workers,
         .server = members.task().index,
         .metric_sums_width =
             core::is_synchronous(options.staleness) ? core::batch_gradient<Program, Backend>::metric_sums_width : 0,
         .timeout = options.timeout,
         .lost_after = options.retry_for + std::chrono::seconds(1),
         .run = detail::hash_of(run),
         .tables = tables_of<Program>()});
    core::parameter_snapshots snapshots(options.snapshots, members.task().index, program);
    snapshots.hold();
    if (snapshots.restore(store)) std::clog << detail::text_of({to_string(members.task()), " continues from its snapshot\n"});
    const core::parameter_service service(address_of(members, members.task().index), to_string(members.task()), members.run_id(),
                                          agreement, store, options.control, members.generation());
    core::serve_until_over(store, workers[0], options.start_timeout, std::move(snapshots));
  }

  /// What must be the same in all processes and in a snapshot that they continue from, in words.
  template <class Program>
  std::string describe(const cluster& members, std::uint64_t seed, const std::string& shards) const {
    std::string roles;  // without addresses: there may be a proxy
    for (const role r : {role::chief, role::worker, role::ps})
      if (members.count(r) > 0) roles += detail::text_of({members.count(r), ' ', core::name_of(r), ", "});
    std::string tables;
    for (const core::row_table& t : core::travelling_tables<Program>::value)
      tables += detail::text_of({", rows at ", t.begin, " are sent one by one"});
    return detail::text_of({roles, shards, ", optimizer ", Program::optimizer::name, ", seed ", seed, ", ",
                            to_string(options.staleness), ", ",
                            options.compute.leaves > 0 ? std::to_string(options.compute.leaves) : "default", " leaves, ",
                            detail::text_of_program<Program>(), tables});
  }
};

template <class R>
parameter_server(R) -> parameter_server<>;
template <class R>
parameter_server(R, parameter_server_options) -> parameter_server<>;

}  // namespace strata
