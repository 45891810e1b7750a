// Transfers batches to a GPU: the host writes one into pinned memory while the device computes the one before.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/program/device_batch.hpp>
#include <type_traits>
#include <utility>

namespace strata::core {

/// Two slots for a batch and for the values that change from step to step, used in turn. A slot is overwritten when the step
/// before the last no longer needs it: so the host is at most two steps ahead, and a copy overlaps the previous step. Numbers: a
/// trivially copyable type, stored in front of the batch. For several steps in one launch, a slot has the Numbers and the indices
/// of each step; their samples, which the device gathers step by step, are stored where those of a single step are.
template <class T, class Numbers>
class batch_slots {
  static_assert(std::is_trivially_copyable_v<Numbers>);
  static constexpr std::size_t alignment = 256;
  struct slot {
    machine::pinned_memory host, host_of_steps;
    cuda_device::buffer<std::byte> device, device_of_steps;
    machine::event copied, used;
    std::size_t size = 0;  // of what is copied
  };

  const end_sizes* ends_;
  std::span<const label_kind> truths_;
  cuda_device on_;
  machine::queue queue_, copies_;  // the steps, and the copies beside them
  slot slots_[2];
  int at_ = 0;
  int step_ = -1;  // of those in the slot; -1: the slot has one step
  std::size_t size_of_step_ = 0;
  bool is_sent_ = true;

 public:
  /// ends, truths: constants of the program, of which the addresses are kept.
  batch_slots(const cuda_device& on, const machine::queue& steps, const end_sizes& ends, std::span<const label_kind> truths)
      : ends_(&ends), truths_(truths), on_(on), queue_(steps), copies_(on.make_queue()) {}

  /// The bytes of device memory for batches of up to `count` samples.
  std::size_t bytes(int count) const { return std::size(slots_) * bytes_of_slot(std::size_t(count)); }
  /// Makes room for batches of up to `count` samples.
  void grow(int count) {
    const std::size_t size = bytes_of_slot(std::size_t(count));
    for (slot& each : slots_) {
      if (size <= each.host.size()) continue;
      on_.wait(copies_);
      each.device = {};  // a device may not have room for both
      each.host = {};
      each.device = on_.allocate<std::byte>(size);
      each.host = machine::pinned_memory(size);
    }
  }

  /// Frees the device memory. All steps must be done.
  void release() {
    on_.wait(copies_);
    for (slot& each : slots_) each.device = {}, each.device_of_steps = {}, each.host = {}, each.host_of_steps = {};
    size_of_step_ = 0;
  }

  /// True if each slot has room for `steps` steps with batches of indices of up to `count` samples.
  bool has_steps(int steps, int count) const {
    const std::size_t size = bytes_of_indices(std::size_t(count));
    // Each of them: there may have been no memory for the last one.
    return size <= size_of_step_ && std::ranges::all_of(slots_, [&](const slot& each) {
             return std::size_t(steps) * size_of_step_ <= each.host_of_steps.size();
           });
  }
  void grow_steps(int steps, int count) {
    if (has_steps(steps, count)) return;
    size_of_step_ = std::max(size_of_step_, bytes_of_indices(std::size_t(count)));
    for (slot& each : slots_) {
      on_.wait(copies_);
      each.device_of_steps = {};
      each.host_of_steps = {};
      each.device_of_steps = on_.allocate<std::byte>(std::size_t(steps) * size_of_step_);
      each.host_of_steps = machine::pinned_memory(std::size_t(steps) * size_of_step_);
    }
  }

  /// Writes the batch into the next slot. Returns the samples at addresses of the device, valid after send(). For a batch of
  /// indices only the indices are valid then; the arrays of samples are still to be gathered.
  samples<T> fill(const samples<T>& batch) {
    take_next();
    step_ = -1, is_sent_ = false;
    slot& to = slots_[at_];
    if (batch.stored) {
      put_indices(to.host.data(), batch);
      to.size = bytes_of_indices(std::size_t(batch.count));  // the device makes the rest
      return gathered(batch.count);
    }
    std::size_t next = end(sizeof(Numbers));
    const auto put = [&]<class V>(const V* from, long size) -> const V* {
      const std::size_t bytes = std::size_t(batch.count) * std::size_t(size) * sizeof(V), at = next;
      if (from && bytes > 0) std::memcpy(to.host.data() + at, from, bytes);
      next = end(at + bytes);
      return reinterpret_cast<const V*>(to.device.data() + at);
    };
    const auto put_if_there = [&](const auto* from, long size) { return from ? put(from, size) : nullptr; };
    samples<T> there;
    there.count = batch.count;
    for (int k = 0; k < ends_->output_count; ++k) {
      const bool is_sparse = truths_[std::size_t(k)] == label_kind::sparse;
      if (is_sparse) there.truths[k].labels = put_if_there(batch.truths[k].labels, 1);
      if (truths_[std::size_t(k)] == label_kind::dense)
        there.truths[k].targets = put_if_there(batch.truths[k].targets, ends_->outputs[k]);
      there.truths[k].weights = put_if_there(batch.truths[k].weights, 1);
      there.truths[k].gradient_weights = put_if_there(batch.truths[k].gradient_weights, 1);
    }
    for (int k = 0; k < ends_->input_count; ++k) there.inputs[k] = put_if_there(batch.inputs[k], ends_->inputs[k]);
    to.size = next;
    return there;
  }
  /// Writes a batch of indices as step `step` of a slot; step 0 takes the next slot. The indices are on the device after
  /// send_steps().
  samples<T> fill_step(const samples<T>& batch, int step) {
    if (step == 0) take_next();
    step_ = step, is_sent_ = true;
    put_indices(host(), batch);
    return gathered(batch.count);
  }
  /// Selects a step of the slot, with a batch of `count` samples: numbers() then refers to this step.
  samples<T> at_step(int step, int count) {
    step_ = step;
    return gathered(count);
  }
  /// The indices that fill_step() has written to a slot, on the host.
  samples<T> indices_of_step(int which, int step, int count) {
    samples<T> batch;
    batch.count = count;
    batch.stored = reinterpret_cast<const sample_index*>(host_of_step(which, step) + end(sizeof(Numbers)));
    return batch;
  }
  const Numbers& numbers_of_step(int which, int step) { return *reinterpret_cast<Numbers*>(host_of_step(which, step)); }
  /// The Numbers of the step, to be written between fill() and send(); and their address on the device.
  Numbers& numbers() { return *reinterpret_cast<Numbers*>(host()); }
  const Numbers* numbers_on_device() const { return reinterpret_cast<const Numbers*>(device()); }
  /// Enqueues one copy, so that work enqueued later can use the batch. Does nothing if the batch was sent before.
  void send() {
    if (is_sent_) return;
    is_sent_ = true;
    slot& it = slots_[at_];
    send(it, it.device.data(), it.host.data(), it.size);
  }
  /// send() for `steps` steps.
  void send_steps(int steps) {
    slot& it = slots_[at_];
    send(it, it.device_of_steps.data(), it.host_of_steps.data(), std::size_t(steps) * size_of_step_);
  }
  /// The index of the slot that has the batch.
  int index() const { return at_; }

 private:
  void take_next() {
    slots_[at_].used.record(queue_);
    at_ = 1 - at_;
    slots_[at_].copied.wait();
  }
  void send(slot& it, std::byte* to, const std::byte* from, std::size_t bytes) {
    it.used.hold(copies_);
    machine::copy_pinned_to_device(copies_, to, from, bytes);
    it.copied.record(copies_);
    it.copied.hold(queue_);
  }
  std::byte* host_of_step(int which, int step) { return slots_[which].host_of_steps.data() + std::size_t(step) * size_of_step_; }
  std::byte* host() { return step_ < 0 ? slots_[at_].host.data() : host_of_step(at_, step_); }
  const std::byte* device() const {
    const slot& it = slots_[at_];
    return step_ < 0 ? it.device.data() : it.device_of_steps.data() + std::size_t(step_) * size_of_step_;
  }
  static void put_indices(std::byte* to, const samples<T>& batch) {
    if (batch.count > 0) std::memcpy(to + end(sizeof(Numbers)), batch.stored, std::size_t(batch.count) * sizeof(sample_index));
  }
  /// The addresses on the device of a batch of indices, and of the samples that are gathered by them.
  samples<T> gathered(int count) const {
    samples<T> there;
    there.count = count;
    there.stored = reinterpret_cast<const sample_index*>(device() + end(sizeof(Numbers)));
    const std::byte* next = slots_[at_].device.data() + bytes_of_indices(std::size_t(count));
    const auto place = [&](std::size_t bytes) { return std::exchange(next, next + end(std::size_t(count) * bytes)); };
    for (int k = 0; k < ends_->output_count; ++k) {
      const label_kind kind = truths_[std::size_t(k)];
      if (kind == label_kind::sparse) there.truths[k].labels = reinterpret_cast<const std::int32_t*>(place(truth_bytes(k)));
      if (kind == label_kind::dense) there.truths[k].targets = reinterpret_cast<const T*>(place(truth_bytes(k)));
    }
    for (int k = 0; k < ends_->input_count; ++k)
      there.inputs[k] = reinterpret_cast<const T*>(place(std::size_t(ends_->inputs[k]) * sizeof(T)));
    return there;
  }
  static constexpr std::size_t bytes_of_indices(std::size_t count) {
    return end(sizeof(Numbers)) + end(count * sizeof(sample_index));
  }
  static constexpr std::size_t end(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  std::size_t bytes_of_slot(std::size_t count) const {
    std::size_t size = bytes_of_indices(count);
    for (int k = 0; k < ends_->output_count; ++k) size += end(count * truth_bytes(k)) + 2 * end(count * sizeof(T));
    for (int k = 0; k < ends_->input_count; ++k) size += end(count * std::size_t(ends_->inputs[k]) * sizeof(T));
    return size;
  }
  std::size_t truth_bytes(int k) const {
    return truths_[std::size_t(k)] == label_kind::dense ? std::size_t(ends_->outputs[k]) * sizeof(T) : sizeof(std::int32_t);
  }
};

}  // namespace strata::core
