// The samples of a batch in the memory of a device.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/device.hpp>
#include <strata/program/program.hpp>

namespace strata {

namespace detail {
template <class... Output>
constexpr std::array<label_kind, sizeof...(Output)> truths_of(type_list<Output...>) {
  return {Output::loss::labels...};
}
}  // namespace detail

namespace core {
/// What the loss at each output of a program reads: labels or targets.
template <class Program>
inline constexpr auto truths_of_program = detail::truths_of(typename Program::outputs{});

/// A batch in device memory, for devices that cannot read host memory. It has the arrays that the network and its losses read.
template <class T, computing_device Device>
class device_batch {
  template <class V>
  using buffer = typename Device::template buffer<V>;

  const end_sizes* ends_;
  std::span<const label_kind> truths_;
  buffer<T> inputs_[max_ends], targets_[max_ends], weights_[max_ends], gradient_weights_[max_ends];
  buffer<std::int32_t> labels_[max_ends];
  // There is memory for weights from the first batch on that has them.
  int capacity_ = 0, weights_capacity_[max_ends] = {}, gradient_weights_capacity_[max_ends] = {};

 public:
  /// Both arguments are constants of the program: ends_of_program and truths_of_program.
  device_batch(const end_sizes& ends, std::span<const label_kind> truths) : ends_(&ends), truths_(truths) {}

  /// Allocates memory for batches of up to `count` samples.
  void grow(const Device& on, int count) {
    if (count <= capacity_) return;
    capacity_ = 0;  // until all of it is there
    for (int k = 0; k < ends_->input_count; ++k) renew(on, inputs_[k], std::size_t(count * ends_->inputs[k]));
    for (int k = 0; k < ends_->output_count; ++k) {
      if (reads(k, label_kind::dense)) renew(on, targets_[k], std::size_t(count * ends_->outputs[k]));
      if (reads(k, label_kind::sparse)) renew(on, labels_[k], std::size_t(count));
    }
    capacity_ = count;
  }

  /// Copies a batch to the device; may return before that is done. Returns the samples at addresses of the device.
  samples<T> copy(const Device& on, typename Device::queue queue, const samples<T>& batch) {
    const auto copied = [&](auto& to, const auto* from, long size) {
      if (from) on.copy_to_device(queue, std::span(from, std::size_t(batch.count * size)), to.data());
      return from ? to.data() : nullptr;
    };
    const auto copied_weights = [&](buffer<T>& to, int& capacity, const T* from) {
      if (from && capacity < capacity_) {
        to = on.template allocate<T>(std::size_t(capacity_));
        capacity = capacity_;
      }
      return copied(to, from, 1);
    };
    samples<T> there;
    there.count = batch.count;
    for (int k = 0; k < ends_->input_count; ++k) there.inputs[k] = copied(inputs_[k], batch.inputs[k], ends_->inputs[k]);
    for (int k = 0; k < ends_->output_count; ++k) {
      there.truths[k].weights = copied_weights(weights_[k], weights_capacity_[k], batch.truths[k].weights);
      there.truths[k].gradient_weights =
          copied_weights(gradient_weights_[k], gradient_weights_capacity_[k], batch.truths[k].gradient_weights);
      if (reads(k, label_kind::sparse)) there.truths[k].labels = copied(labels_[k], batch.truths[k].labels, 1);
      if (reads(k, label_kind::dense)) there.truths[k].targets = copied(targets_[k], batch.truths[k].targets, ends_->outputs[k]);
    }
    return there;
  }

 private:
  /// Frees the memory first: a device may not have room for both.
  template <class V>
  static void renew(const Device& on, buffer<V>& memory, std::size_t size) {
    memory = {};
    memory = on.template allocate<V>(size);
  }
  bool reads(int output, label_kind kind) const { return truths_[std::size_t(output)] == kind; }
};
}  // namespace core

}  // namespace strata
