// The state of one GPU of an engine, whether it computes some leaves of a batch or some layers of a network.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/cuda/engine/batch_slots.hpp>
#include <strata/cuda/engine/update.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/cuda/machine/loops.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/device_batch.hpp>
#include <strata/program/step_context.hpp>
#include <type_traits>

namespace strata::core {

/// The arrays of a GPU, and its part of the current step.
template <class Program, class Backend>
struct engine_device {
  using T = typename Program::value_type;
  template <class V>
  using buffer = cuda_device::buffer<V>;
  static constexpr const auto& plan = plan_of<Program, Backend>;

  /// The values that change from step to step.
  struct numbers {
    update_numbers<T> update;
    std::int64_t step;                // see step_sums
    philox random[plan.group_count];  // of each group
  };

  int number;  // among those of this process
  cuda_device on;
  machine::queue queue = on.make_queue();
  buffer<T> weights, slots;
  buffer<T> gradients;  // of its leaves, one after the other
  buffer<double> sums;  // of its leaves
  cuda_update<T> update;
  batch_slots<T, numbers> batches;
  step_context<T, cuda_device> context;
  samples<T> batch;  // at addresses of the device

  /// elements: the size of the weights; slot_elements: of all slots. ranges, begins: see cuda_update.
  engine_device(int replica, int index, long elements, long slot_elements, std::span<const parameter_range> ranges,
                std::span<const long> begins = {})
      : number(replica),
        on(index),
        weights(on.allocate<T>(std::size_t(elements))),
        slots(on.allocate<T>(std::size_t(slot_elements))),
        update(on, queue, ranges, begins),
        batches(on, queue, ends_of_program<Program>, truths_of_program<Program>) {}

  /// Frees the memory first: a device may not have room for both.
  template <class V>
  void grow(buffer<V>& memory, std::size_t size) const {
    if (size <= memory.size()) return;
    memory = {};
    memory = on.allocate<V>(size);
  }
  template <class V>
  void clear(const buffer<V>& memory) const {
    machine::for_each_index(queue, long(memory.size()), machine::fill_with_zeros<V>{memory.data()});
  }
  /// Enqueues a copy to the host, which is complete after wait().
  template <class V>
  void read(const V* from, std::type_identity_t<std::span<V>> to) const {
    on.copy_to_host(queue, from, to);
  }
  template <class V>
  void write(std::type_identity_t<std::span<const V>> from, V* to) const {
    on.copy_to_device(queue, from, to);
  }
  void wait() const { on.wait(queue); }

  /// there: the batch at addresses of the device, in the current slot of `batches`.
  void use_batch(const samples<T>& there) {
    batch = there;
    context.random_of_group = batches.numbers_on_device()->random;
  }
  /// Writes the random generators of the kernels of the current step to the slot of the batch.
  void bring_random_numbers() {
    for (int g = 0; g < plan.group_count; ++g)
      batches.numbers().random[g] = context.random.fork(std::uint64_t(plan.groups[g].first));
  }
};

}  // namespace strata::core
