// One GPU of an engine whose GPUs all have all weights: it computes some leaves of a batch.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/device_numbers.hpp>
#include <strata/cuda/engine/engine_device.hpp>
#include <strata/cuda/engine/kept_samples.hpp>
#include <strata/cuda/engine/memory_need.hpp>
#include <strata/cuda/engine/metrics.hpp>
#include <strata/cuda/engine/prepared_kernels.hpp>
#include <strata/cuda/engine/step_sums.hpp>
#include <strata/cuda/kernels/kernels.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/pass.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::core {

template <class Program>
struct cuda_replica : engine_device<Program, cuda> {
  using base = engine_device<Program, cuda>;
  using base::on, base::queue, base::slots, base::gradients, base::sums, base::batches, base::context, base::batch;
  using typename base::T;
  template <class V>
  using buffer = cuda_device::buffer<V>;
  template <purpose Why>
  using pass = detail::pass<Program, cuda, Why>;
  template <purpose Why>
  using work = workspace<Program, cuda, Why>;
  using sums_of_leaf = leaf_sums<Program, cuda>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& ends = ends_of_program<Program>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr purpose inferring = infers_differently<Program> ? purpose::inference : purpose::training;

  buffer<double> statistics;
  buffer<double> all_sums;  // copies of those of all devices, if there are several
  work<purpose::training> training;
  work<inferring> inference;
  leaf_range own;                             // leaves of the batch
  std::unique_ptr<device_numbers<T>> reader;  // for an observer that reads numbers
  kept_samples kept;
  machine::stored_batch<T> stored;  // the batch, before it is gathered
  bool is_gathered = true;
  prepared_kernels prepared;

  cuda_replica(int number, int index, int slot_count)
      : base(number, index, layout.size, layout.trainable * slot_count, trained.span()),
        statistics(on.template allocate<double>(sums_of_leaf::statistics)) {}

  /// The memory that the arenas of every replica need.
  static std::vector<detail::memory_need> arenas(long slot_count) {
    return {{long(sizeof(T)) * layout.size, "weights"},
            {long(sizeof(T)) * layout.trainable * slot_count, "slots of the optimizer"}};
  }
  /// The memory that it needs for batches of `count` samples, of which it computes `leaves` leaves and `rows` rows, as text.
  /// copied: the leaves of other GPUs whose gradients are copied to it.
  [[gnu::cold]] std::string needed(purpose why, int count, long leaves, int rows, long copied) const {
    const bool trains = why == purpose::training;
    const std::size_t activations = trains ? work<purpose::training>::size(rows, rows) : work<inferring>::size(rows, rows);
    auto needs = arenas(long(slots.size()) / std::max(1L, layout.trainable));
    needs.push_back({trains ? leaves * layout.trainable * long(sizeof(T)) : 0L, "gradients of " + detail::of_leaves(leaves)});
    needs.push_back({long(activations * sizeof(T)), "activations"});
    needs.push_back({long(batches.bytes(rows)), "the batch"});
    needs.push_back({copied * layout.trainable * long(sizeof(T)),
                     "copies of the gradients of " + detail::of_leaves(copied) + " of other GPUs"});
    return detail::text_of({trains ? ". To train with batches of " : ". For batches of ", count, ", a GPU needs ",
                            detail::text_of_needs(needs), "; smaller batches need less"}) +
           (kept.empty() ? ""
                         : detail::text_of({". The data set in its memory takes ", kept.bytes(),
                                            ": cuda_options{.kept_data_memory = 0} keeps it on the host"}));
  }

  /// Frees the memory whose size depends on the batch.
  void release_memory_of_batch() {
    this->wait();
    gradients = {}, sums = {}, all_sums = {}, training = {}, inference = {};
    batches.release();
  }

  /// See engine_device.
  void use_batch(const samples<T>& there) {
    base::use_batch(there);
    is_gathered = !there.stored;
  }
  /// A pass over its leaves, whose first sample has this index in the batch. memory: `training` or `inference`, which may have
  /// the same plan.
  template <purpose Why>
  pass<Why> pass_in(work<Why>& memory, long first = 0) {
    return {context, memory, sums_of_leaf{gradients.data(), sums.data()}, batch, first};
  }
  /// Prepares the kernels for the size of the batch, unless they are prepared already.
  void prepare_kernels(purpose why) {
    if constexpr (pass<purpose::training>::prepares || pass<inferring>::prepares) {
      if (own.size() == 0) return;
      const prepared_kernels::pass_size size{why, batch.count, context.leaves.count, context.leaves.capacity};
      context.prepared = prepared.find(size);
      if (context.prepared) return;
      prepared.add(size, why == purpose::training ? pass_in(training).prepare(true) : pass_in(inference).prepare(false));
      context.prepared = prepared.find(size);
    }
  }
  /// Before each pass: gathers the batch from the samples on the device, or leaves that to the first kernel.
  void gather() {
    context.forward_from_stored = nullptr;
    if (std::exchange(is_gathered, true)) return;
    using first_kernel = typename detail::kernel_in_program<Program, cuda, 0, purpose::training>::type;
    stored = kept.batch(batch, ends.inputs[0], ends.outputs[0]);
    if constexpr (requires { requires first_kernel::makes_its_input; })
      if (!kept.mirrors()) {
        context.stored_batch = &stored;
        context.forward_from_stored = [](const machine::queue& q, const operands<T>& o, const void* from) {
          first_kernel::forward_of_stored(q, o, *static_cast<const machine::stored_batch<T>*>(from));
        };
        return;
      }
    constexpr int threads = machine::threads_for_row(ends.inputs[0]);
    machine::launch(queue, batch.count, machine::gather_samples<T, threads>{stored});
  }
  /// See cuda_update::run.
  template <class Also>
  void update_weights(const typename Program::optimizer& rules, const update_numbers<T>* now,
                      const global_gradient<T, cuda_device>& gradient, const Also& also) {
    this->update.run(rules, now, gradient, this->weights.data(), slots.data(), layout.trainable, also);
  }
  /// The sums of all leaves, from number `first` of each on, on this device. The devices have waited for each other.
  machine::leaf_doubles sums_of_all(const device_group<cuda_replica>& all, long first, int leaves) const {
    constexpr long size = long(sums_of_leaf::size);
    if (all.size() == 1) return {sums.data() + first, size, leaves};
    for (const cuda_replica& each : all)
      machine::copy_between(queue, all_sums.data() + each.own.begin * size, each.sums.data(),
                            std::size_t(each.own.size() * size) * sizeof(double));
    return {all_sums.data() + first, size, leaves};
  }
};

}  // namespace strata::core
