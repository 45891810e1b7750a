// parameter_server: workers compute gradients, servers keep the parameters. Needs gRPC.
// needs: grpc
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/parameter_server/parameter_client.hpp>
#include <strata/distribute/parameter_server/parameter_service.hpp>
#include <strata/distribute/parameter_server/staleness.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct parameter_server_options {
  compute_options compute{};  // of each worker
  staleness_policy staleness = asynchronous{};
  strata::partitioner partitioner{};  // left out: min_size_partitioner, with as many shards as servers at most
  control_options control{};
  snapshot_options snapshots{};  // of each server, in a folder of its own or a shared one
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until all servers, or a worker, are there
  std::chrono::milliseconds timeout = std::chrono::seconds(60);       // how long one waits for others in a step
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);      // how long a server may be out of reach
};

/// `parameter_server{tf_config()}`: the chief and the workers run fit, each on batches of its own (`data::shard`); the
/// processes with role ps keep the parameters and the optimizer's state, cut into shards. Workers push the gradient of each
/// batch and get the newest weights back, as in TensorFlow's between-graph replication. History, validation and predictions are
/// those of each worker, with the weights it has. With `{.staleness = synchronous{}}` all workers read the same global batches,
/// and the parameters are those of one_device, bit for bit, with as many leaves.
/// In a ps, making the trainer serves until the chief's trainer is destroyed and no worker trains any more; then the process
/// exits with status 0.
/// Throws strata::error for a wrong cluster, naming the field, for a program that is not that of the servers, and for an
/// optimizer that clips by norms; communication_error if a server does not come, or is lost, naming it.
/// https://www.tensorflow.org/api_docs/python/tf/compat/v1/distribute/experimental/ParameterServerStrategy
template <cluster_resolver Resolver>
struct parameter_server {
  static constexpr auto name = "parameter_server";
  Resolver resolver;
  parameter_server_options options{};

  template <class Program>
  using executor = parameter_executor<Program, parameter_client>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    using T = typename Program::value_type;
    static constexpr const auto& layout = layout_of_program<Program>;
    Resolver resolve = resolver;
    const cluster members = resolve();
    executor<Program>::check(optimizer);
    if (const auto* bounded = std::get_if<bounded_staleness>(&options.staleness); bounded && bounded->steps < 0)
      throw error("parameter_server: bounded_staleness of " + std::to_string(bounded->steps) + " steps");
    if (is_synchronous(options.staleness) && members.size() > max_leaves)
      throw error("parameter_server: " + std::to_string(members.size()) + " workers cannot share the " +
                  std::to_string(max_leaves) + " leaves of a batch, which is the most there are");
    const int servers = members.count(role::ps);
    const strata::partitioner how =
        options.partitioner ? options.partitioner : min_size_partitioner{.max_shards = std::max(1, servers)};
    std::vector<parameter_shard> shards = partition(layout.trainable, sizeof(T), how, servers);
    const std::string run = members.run_id() + ' ' + std::to_string(members.generation());
    const std::string program = describe<Program>(members, seed, shards.size());
    constexpr std::size_t tally_width = batch_gradient<Program, cpu>::tally_width;

    if (members.task().type == role::ps) {
      serve<Program>(std::move(optimizer), members, shards, run, program);
      std::exit(EXIT_SUCCESS);
    }
    if (!members.trains())
      throw error("parameter_server: this process is " + to_string(members.task()) + ", which neither trains nor serves");
    std::vector<endpoint> addresses;
    for (int s = 0; s < servers; ++s) addresses.push_back(address_of(members, s));
    parameter_client<T> client(addresses, std::move(shards),
                               {members.rank(), members.size(), is_synchronous(options.staleness), tally_width, run, program,
                                options.control, options.start_timeout, options.timeout, options.retry_for,
                                tables_of<Program>()});
    return {std::move(optimizer), seed, std::move(client), options.compute};
  }

 private:
  static endpoint address_of(const cluster& members, int server) {
    const cluster_task task{role::ps, server};
    const auto& address = members.address(task);
    if (!address)
      throw error("parameter_server: nobody knows the address of " + to_string(task) +
                  ": use a resolver that knows all, such as tf_config()");
    return *address;
  }

  template <class Program>
  static std::vector<row_table> tables_of() {
    constexpr const auto& tables = travelling_tables<Program>::value;
    return {tables.begin(), tables.end()};
  }

  template <class Program>
  void serve(typename Program::optimizer optimizer, const cluster& members, const std::vector<parameter_shard>& shards,
             const std::string& run, const std::string& program) const {
    using T = typename Program::value_type;
    static constexpr auto trained = trained_ranges(layout_of_program<Program>);
    std::vector<std::string> workers;
    for (int r = 0; r < members.size(); ++r) workers.push_back(to_string(members.task_of_rank(r)));
    parameter_store<T, typename Program::optimizer> store(
        std::move(optimizer), trained.span(), shards,
        {options.staleness, workers, members.task().index,
         is_synchronous(options.staleness) ? batch_gradient<Program, cpu>::tally_width : 0, options.timeout,
         options.retry_for + std::chrono::seconds(1), detail::hash_of(run), tables_of<Program>()});
    parameter_snapshots snapshots(options.snapshots, members.task().index, program);
    if (snapshots.restore(store)) std::clog << to_string(members.task()) + " goes on from its snapshot\n";
    const parameter_service service(address_of(members, members.task().index), to_string(members.task()), run, program, store,
                                    options.control);
    serve_until_over(store, workers[0], options.start_timeout, std::move(snapshots));
  }

  /// What has to be equal in all processes, and what a person needs to see where it is not.
  template <class Program>
  std::string describe(const cluster& members, std::uint64_t seed, std::size_t shards) const {
    constexpr const auto& layout = layout_of_program<Program>;
    std::string shapes;
    for (int k = 0; k < layout.count; ++k) {
      const auto& extents = layout.slots[k].what.extents;
      shapes += k > 0 ? " " : "";
      for (int axis = 0; axis < extents.rank(); ++axis) shapes += (axis > 0 ? "x" : "") + std::to_string(extents[axis]);
    }
    for (const row_table& t : travelling_tables<Program>::value)
      shapes += ", of which the rows at " + std::to_string(t.begin) + " travel one by one";
    if (shapes.size() > 1000) shapes = "hash " + std::to_string(detail::hash_of(shapes));
    std::string roles;  // not their addresses: there may be a proxy in between
    for (const role r : {role::chief, role::worker, role::ps})
      if (members.count(r) > 0) roles += std::to_string(members.count(r)) + ' ' + name_of(r) + ", ";
    return roles + "float" + std::to_string(8 * sizeof(typename Program::value_type)) + ", parameters " + shapes + ", in " +
           std::to_string(shards) + " shards, optimizer " + Program::optimizer::name + ", seed " + std::to_string(seed) + ", " +
           to_string(options.staleness) + ", " +
           (options.compute.leaves > 0 ? std::to_string(options.compute.leaves) : "default") + " leaves";
  }
};
template <class R>
parameter_server(R) -> parameter_server<R>;
template <class R>
parameter_server(R, parameter_server_options) -> parameter_server<R>;

}  // namespace strata
