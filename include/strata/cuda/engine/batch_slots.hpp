// How batches come to a GPU: the host writes one into pinned memory while the device computes on the one before.
// needs: boost_context
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/cuda/machine/device.hpp>
#include <strata/program/device_batch.hpp>
#include <type_traits>

namespace strata {

/// Two places for a batch and for the numbers that change from step to step, which steps take in turn. A place is written when
/// the step before the last is done with it: so the host is at most two steps ahead, and a copy runs beside the step before.
/// Numbers: a trivially copyable type, in front of the batch.
template <class T, class Numbers>
class batch_slots {
  static_assert(std::is_trivially_copyable_v<Numbers>);
  static constexpr std::size_t alignment = 256;
  struct slot {
    machine::pinned_memory host;
    cuda_device::buffer<std::byte> device;
    machine::event copied, used;
    std::size_t size = 0;  // of what is copied
  };

  const end_sizes* ends_;
  std::span<const label_kind> truths_;
  cuda_device on_;
  machine::queue queue_, copies_;  // the steps, and the copies beside them
  slot slots_[2];
  int at_ = 0;
  bool is_sent_ = true;

 public:
  /// ends, truths: of the program, constants.
  batch_slots(const cuda_device& on, const machine::queue& steps, const end_sizes& ends, std::span<const label_kind> truths)
      : ends_(&ends), truths_(truths), on_(on), queue_(steps), copies_(on.make_queue()) {}

  /// Of the device, for batches of up to `count` samples.
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

  /// The next slot gets this batch. Returns the samples at addresses of the device, where they are after send(). Of a batch of
  /// indices only these are there then, and places for the samples.
  samples<T> fill(const samples<T>& batch) {
    slots_[at_].used.record(queue_);
    at_ = 1 - at_;
    is_sent_ = false;
    slot& to = slots_[at_];
    to.copied.wait();
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
    if (batch.stored) {
      there.stored = put(batch.stored, 1);
      to.size = next;  // the device makes the rest
      for (int k = 0; k < ends_->output_count; ++k) {
        const label_kind kind = truths_[std::size_t(k)];
        if (kind == label_kind::sparse) there.truths[k].labels = put(static_cast<const std::int32_t*>(nullptr), 1);
        if (kind == label_kind::dense) there.truths[k].targets = put(static_cast<const T*>(nullptr), ends_->outputs[k]);
      }
      for (int k = 0; k < ends_->input_count; ++k) there.inputs[k] = put(static_cast<const T*>(nullptr), ends_->inputs[k]);
      return there;
    }
    for (int k = 0; k < ends_->output_count; ++k) {
      const bool is_sparse = truths_[std::size_t(k)] == label_kind::sparse;
      if (is_sparse) there.truths[k].labels = put_if_there(batch.truths[k].labels, 1);
      if (truths_[std::size_t(k)] == label_kind::dense)
        there.truths[k].targets = put_if_there(batch.truths[k].targets, ends_->outputs[k]);
      there.truths[k].weights = put_if_there(batch.truths[k].weights, 1);
    }
    for (int k = 0; k < ends_->input_count; ++k) there.inputs[k] = put_if_there(batch.inputs[k], ends_->inputs[k]);
    to.size = next;
    return there;
  }
  /// The numbers of the slot, to be written between fill() and send(); and where they are on the device.
  Numbers& numbers() { return *reinterpret_cast<Numbers*>(slots_[at_].host.data()); }
  const Numbers* numbers_on_device() const { return reinterpret_cast<const Numbers*>(slots_[at_].device.data()); }
  /// One copy. Work that is enqueued from now on has the batch. Nothing, if it was sent before.
  void send() {
    if (is_sent_) return;
    is_sent_ = true;
    slot& it = slots_[at_];
    it.used.hold(copies_);
    machine::copy_pinned_to_device(copies_, it.device.data(), it.host.data(), it.size);
    it.copied.record(copies_);
    it.copied.hold(queue_);
  }
  /// Which of the two slots the batch is in.
  int index() const { return at_; }

 private:
  static constexpr std::size_t end(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  std::size_t bytes_of_slot(std::size_t count) const {
    std::size_t size = end(sizeof(Numbers)) + end(count * sizeof(sample_index));
    for (int k = 0; k < ends_->output_count; ++k) size += end(count * truth_bytes(k)) + end(count * sizeof(T));
    for (int k = 0; k < ends_->input_count; ++k) size += end(count * std::size_t(ends_->inputs[k]) * sizeof(T));
    return size;
  }
  std::size_t truth_bytes(int k) const {
    return truths_[std::size_t(k)] == label_kind::dense ? std::size_t(ends_->outputs[k]) * sizeof(T) : sizeof(std::int32_t);
  }
};

}  // namespace strata
