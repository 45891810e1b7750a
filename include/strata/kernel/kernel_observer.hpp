// The interface of observers of kernel calls of training steps: a profiler, or a search for elements that are not finite.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/kernel/kernel.hpp>
#include <vector>

namespace strata {

namespace core {
enum class pass_direction { forward, backward };

/// One call of a kernel, for the samples [first_sample, first_sample + count) of the global batch.
struct observed_call {
  int group;  // index in the plan for training
  pass_direction direction;
  int count;
  std::int64_t first_sample;
  bool collects = false;  // accumulates statistics for a whole-batch operation, whose output and gradients follow later
};

/// Reads elements of a call in the memory of their device. is_narrow: see narrow_end.
class number_reader {
 public:
  /// The index of the first element that is not finite; `size` if all are finite.
  virtual std::size_t first_not_finite(const void* numbers, std::size_t size, bool is_narrow) const = 0;
  virtual double number(const void* numbers, std::size_t i, bool is_narrow) const = 0;

 protected:
  number_reader() = default;
  number_reader(const number_reader&) = default;
  ~number_reader() = default;
};

/// The numbers of a call: the pointers of its operands, with their type erased. The gradients of an update that is made at once
/// (engine_traits::updates_at_once) are not there.
struct observed_numbers {
  const void *input[max_inputs] = {}, *output = nullptr, *parameter[max_group_parameters] = {};
  const void *input_gradient[max_inputs] = {}, *parameter_gradient[max_group_parameters] = {};
  leaves_of_call leaves{};                                   // parameter gradients, one set per leaf
  const number_reader* reader = nullptr;                     // null: the arrays are in host memory
  bool has_narrow_input = false, has_narrow_output = false;  // has_narrow_input: also the gradient of the input
};

/// Called concurrently by the threads that compute, before and after each kernel of a training step. If the device has a queue,
/// `ended` is called when the queue is empty, and the pointers are device addresses.
class kernel_observer {
 public:
  virtual void begins(const observed_call&) = 0;
  virtual void ended(const observed_call&, const observed_numbers&) = 0;
  /// Whether the observer reads parameter gradients, so that each must be stored before the update.
  virtual bool reads_gradients() const = 0;
  /// Whether the observer reads elements through number_reader if there is one, and so supports devices.
  virtual bool reads_devices() const { return false; }

 protected:
  kernel_observer() = default;
  kernel_observer(const kernel_observer&) = default;
  ~kernel_observer() = default;
};
}  // namespace core

namespace detail {
/// Combines several observers into one.
class kernel_observers final : public kernel_observer {
  std::vector<kernel_observer*> all_;

 public:
  void add(kernel_observer& one) { all_.push_back(&one); }
  [[gnu::cold]] void begins(const observed_call& call) override {
    for (kernel_observer* each : all_) each->begins(call);
  }
  [[gnu::cold]] void ended(const observed_call& call, const observed_numbers& numbers) override {
    for (kernel_observer* each : all_) each->ended(call, numbers);
  }
  bool reads_gradients() const override {
    for (const kernel_observer* each : all_)
      if (each->reads_gradients()) return true;
    return false;
  }
  bool reads_devices() const override {
    for (const kernel_observer* each : all_)
      if (each->reads_gradients() && !each->reads_devices()) return false;
    return true;
  }
};

template <class T>
observed_numbers observed_numbers_of(const operands<T>& o) {
  observed_numbers n;
  for (int k = 0; k < max_inputs; ++k) n.input[k] = o.x[k], n.input_gradient[k] = o.dx[k];
  for (int k = 0; k < max_group_parameters; ++k) n.parameter[k] = o.w[k], n.parameter_gradient[k] = o.dw[k];
  n.output = o.y;
  n.leaves = o.leaves;
  return n;
}
}  // namespace detail

}  // namespace strata
