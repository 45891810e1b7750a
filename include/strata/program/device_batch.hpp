// The samples of a batch in the memory of a device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/device.hpp>

namespace strata {

/// For engines whose device cannot read the memory of the host.
template <class T, device Device>
class device_batch {
  template <class V>
  using buffer = typename Device::template buffer<V>;

  const end_sizes* ends_;
  buffer<T> inputs_[max_ends], targets_[max_ends];
  buffer<std::int32_t> labels_[max_ends];
  int capacity_ = 0;

 public:
  /// ends: of the program, a constant.
  explicit device_batch(const end_sizes& ends) : ends_(&ends) {}

  /// Allocates memory for batches of up to `count` samples.
  void grow(const Device& on, int count) {
    if (count <= capacity_) return;
    capacity_ = count;
    for (int k = 0; k < ends_->input_count; ++k) inputs_[k] = on.template allocate<T>(std::size_t(count * ends_->inputs[k]));
    for (int k = 0; k < ends_->output_count; ++k) {
      targets_[k] = on.template allocate<T>(std::size_t(count * ends_->outputs[k]));
      labels_[k] = on.template allocate<std::int32_t>(std::size_t(count));
    }
  }

  /// Copies a batch to the device; may return before that is done. Returns the samples at addresses of the device.
  samples<T> copy(const Device& on, typename Device::queue queue, const samples<T>& batch) {
    const auto copied = [&](auto& to, const auto* from, long size) {
      if (from) on.copy_to_device(queue, std::span(from, std::size_t(batch.count * size)), to.data());
      return from ? to.data() : nullptr;
    };
    samples<T> there;
    there.count = batch.count;
    for (int k = 0; k < ends_->input_count; ++k) there.inputs[k] = copied(inputs_[k], batch.inputs[k], ends_->inputs[k]);
    for (int k = 0; k < ends_->output_count; ++k)
      there.truths[k] = {copied(labels_[k], batch.truths[k].labels, 1),
                         copied(targets_[k], batch.truths[k].targets, ends_->outputs[k])};
    return there;
  }
};

}  // namespace strata
