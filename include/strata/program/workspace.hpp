// The memory in which a plan is computed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/arena.hpp>
#include <strata/concepts/device.hpp>
#include <strata/program/compiled.hpp>

namespace strata::core {

/// Memory for activations and their gradients (of a leaf, and of a micro-batch), and scratch.
template <class Program, class Backend, purpose Why>
class workspace {
  using T = typename Program::value_type;
  using device = device_of<Backend>;
  using buffer = typename device::template buffer<T>;
  static constexpr const auto& plan = plan_of<Program, Backend, Why>;
  buffer lasting_, passing_, scratch_;
  int leaf_ = 0, micro_batch_ = 0;

 public:
  /// Of all its memory, in elements.
  static constexpr std::size_t size(int leaf, int micro_batch) {
    return std::size_t(leaf) * std::size_t(plan.workspace) + std::size_t(micro_batch) * std::size_t(plan.passing) +
           std::size_t(plan.scratch) + std::size_t(micro_batch) * std::size_t(plan.scratch_per_sample);
  }
  /// leaf: the number of samples whose activations are kept between passes, if the plan needs that.
  void prepare(const device& on, int leaf, int micro_batch) {
    leaf = std::max(leaf_, leaf), micro_batch = std::max(micro_batch_, micro_batch);
    leaf_ = micro_batch_ = 0;  // until all of it is there
    grow(on, lasting_, std::size_t(leaf) * std::size_t(plan.workspace));
    grow(on, passing_, std::size_t(micro_batch) * std::size_t(plan.passing));
    grow(on, scratch_, std::size_t(plan.scratch) + std::size_t(micro_batch) * std::size_t(plan.scratch_per_sample));
    leaf_ = leaf, micro_batch_ = micro_batch;
  }
  /// Where a micro-batch begins in a buffer of `size` elements per sample. first: the index of its first sample in the leaf.
  T* at(workspace_location where, int size, int first) {
    if (where.offset < 0) return nullptr;
    if (where.passes) return passing_.data() + std::size_t(where.offset) * std::size_t(micro_batch_);
    return lasting_.data() + std::size_t(where.offset) * std::size_t(leaf_) + std::size_t(first) * std::size_t(size);
  }
  T* scratch() { return scratch_.data(); }
  /// The predictions of the last forward or infer, for output k: (count, output shape).
  const T* predictions(int k) { return at(plan.groups[plan.output_group[k]].output, 0, 0); }

 private:
  static void grow(const device& on, buffer& memory, std::size_t size) {
    if (size <= memory.size()) return;
    if constexpr (!device::is_host) memory = {};  // it may not have room for both
    memory = on.template allocate<T>(size);
    if constexpr (device::is_host) detail::poison(memory.span());
  }
};

}  // namespace strata::core
