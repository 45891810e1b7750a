// multi_worker_mirrored: one process per worker, on one or many machines, all with the same parameters. Needs gRPC.
// needs: grpc
#pragma once
#include <chrono>
#include <cstdint>
#include <strata/base/hash.hpp>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/control/worker_connections.hpp>
#include <strata/distribute/synchronous/synchronous.hpp>
#include <strata/network/layout.hpp>
#include <strata/train/late_workers.hpp>
#include <string>
#include <utility>

namespace strata {

struct multi_worker_options {
  compute_options compute{};               // of each worker
  communication_options communication{};
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);  // until all workers are there
  elastic_options elastic{};
};

namespace detail {
/// What has to be equal in all workers, and what a person needs to see where it is not.
template <class Program>
std::string describe_program(std::uint64_t seed, const compute_options& compute, const communication_options& communication,
                             const char* optimizer) {
  constexpr const auto& layout = layout_of_program<Program>;
  fnv1a shapes;  // over what the arena consists of
  for (int k = 0; k < layout.count; ++k) {
    const auto& slot = layout.slots[k];
    shapes.add(std::uint64_t(slot.offset));
    for (int axis = 0; axis < slot.what.extents.rank(); ++axis) shapes.add(std::uint64_t(slot.what.extents[axis]));
  }
  constexpr const char* through[] = {"", ", all over TCP", ", all through Gloo", ", through MPI"};
  return "float" + std::to_string(8 * sizeof(typename Program::value_type)) + ", " + std::to_string(layout.size) +
         " numbers in " + std::to_string(layout.count) + " parameters (" + std::to_string(shapes.value()) + "), optimizer " +
         optimizer + ", seed " + std::to_string(seed) + ", " + (compute.leaves > 0 ? std::to_string(compute.leaves) : "default") +
         " leaves, " + (communication.bytes_per_pack > 0 ? std::to_string(communication.bytes_per_pack) : "default") +
         " bytes per pack" + (communication.bf16_gradients ? " in bf16" : "") +
         through[std::size_t(communication.implementation)];
}
}  // namespace detail

/// `multi_worker_mirrored{tf_config()}`: each worker runs the same program on the same data set and computes its share of every
/// global batch; gradients are added in the tree that one process adds them in. So the parameters are those of one_device, bit
/// for bit, for any number of workers and of threads in each (with as many leaves: `{.compute = {.leaves = 4}}`; without a number
/// a batch has at least as many leaves as there are workers). A cluster of one worker needs no connections. With `{.elastic =
/// {.least_workers = 2}}` a training outlives the loss of workers, as long as the chief and so many are left, and one that is
/// started again is taken in at the end of a step: the parameters stay the same, bit for bit. Making a trainer connects the
/// workers. Throws strata::error for a wrong cluster, naming the field, and if a worker trains another program, naming both;
/// communication_error if a worker does not come, or is lost.
/// https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
template <cluster_resolver Resolver>
struct multi_worker_mirrored {
  static constexpr auto name = "multi_worker_mirrored";
  Resolver resolver;
  multi_worker_options options{};

  using fit_callback = late_workers;

  template <class Program>
  using executor = synchronous_executor<Program, cpu, worker_connections>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    Resolver resolve = resolver;
    const cluster members = resolve();
    if (!members.trains())
      throw error("multi_worker_mirrored: this process is " + to_string(members.task()) +
                  ", but only the chief and workers train");
    worker_connections processes(members,
                                 detail::describe_program<Program>(seed, options.compute, options.communication, optimizer.name),
                                 {options.communication, options.control, options.elastic, options.start_timeout});
    return {std::move(optimizer), seed, options.compute, std::move(processes), options.communication};
  }
};
template <class R>
multi_worker_mirrored(R) -> multi_worker_mirrored<R>;
template <class R>
multi_worker_mirrored(R, multi_worker_options) -> multi_worker_mirrored<R>;

}  // namespace strata
