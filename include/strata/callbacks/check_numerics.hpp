// check_numerics: finds the first layer and sample whose output or gradient is nan or infinite.
#pragma once
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <mutex>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace strata {

/// `fit(source, epochs(10), check_numerics{})` checks the outputs and the gradients of each layer in every training step, and
/// throws strata_error after the first step with an element that is not finite. The error names the layer, the sample of
/// the batch and the element. The update of that step has then been applied. Every output and gradient is read once more; a step
/// without the callback has no overhead.  https://www.tensorflow.org/api_docs/python/tf/debugging/enable_check_numerics
class check_numerics final : core::kernel_observer {
  enum class place { input, output, input_gradient, parameter_gradient };

  /// One element that is not finite. The smallest finding is the first in the order of computation.
  struct finding {
    long steps_before;
    core::pass_direction direction;
    int order;           // index of the group in the pass
    std::int64_t first;  // first sample of the call
    std::size_t element;
    place where;
    int index;  // of the input or the parameter
    int group, count;
    double value;
    std::string parameters;  // names of the parameters that are not finite

    auto key() const { return std::tuple(steps_before, direction, order, where, first, element); }
  };

  std::vector<core::listed_kernel> kernels_;
  std::size_t element_size_ = 0;
  std::mutex mutex_;
  std::optional<finding> found_;
  const training_state* state_ = nullptr;  // state of the current training

 public:
  void on_train_begin(training_state& s, fitted_model& model) {
    s.bad_loss_ends_training = true;  // check_numerics throws the error itself
    kernels_ = model.kernels();
    element_size_ = model.element_size();
    found_.reset();
    state_ = &s;
    model.observe(*this);
  }
  void on_batch_end(training_state& s) {
    if (found_)
      throw_error({"check_numerics: epoch ", s.epoch + 1, ", update ", found_->steps_before + 1, ": ", text_of_finding(s)});
    if (!std::isfinite(s.loss))
      throw_error({"check_numerics: epoch ", s.epoch + 1, ", update ", s.step, ": the loss is ", s.loss,
                   ", although the outputs and gradients that this process computes are finite"});
  }

 private:
  void begins(const core::observed_call&) override {}
  bool reads_gradients() const override { return true; }
  bool reads_devices() const override { return true; }
  void ended(const core::observed_call& call, const core::observed_numbers& numbers) override {
    if (call.collects) return;
    const core::listed_kernel& kernel = kernels_[std::size_t(call.group)];
    const std::size_t count = std::size_t(call.count);
    const part all{call, numbers, call.first_sample, call.count};
    if (call.direction == core::pass_direction::forward) {
      for (std::size_t k = 0; k < kernel.inputs.size(); ++k)
        if (kernel.inputs[k].name.empty()) look(all, place::input, k, numbers.input[k], count * kernel.inputs[k].size);
      look(all, place::output, 0, numbers.output, count * std::size_t(kernel.output.size()), numbers.has_narrow_output);
    } else {
      for (std::size_t k = 0; k < kernel.inputs.size(); ++k)
        look(all, place::input_gradient, k, numbers.input_gradient[k], count * kernel.inputs[k].size, numbers.has_narrow_input);
      look_at_leaves(all, kernel);
    }
  }

  /// A range of the samples of a call.
  struct part {
    const core::observed_call& call;
    const core::observed_numbers& numbers;
    std::int64_t first_sample;
    int count;
  };
  /// Checks the parameter gradients leaf by leaf: each leaf has its own.
  void look_at_leaves(const part& all, const core::listed_kernel& kernel) {
    const core::leaves_of_call& leaves = all.numbers.leaves;
    const int capacity = leaves.capacity > 0 ? leaves.capacity : all.count;
    for (int l = 0; l < leaves.count && l * capacity < all.count; ++l) {
      const part leaf{all.call, all.numbers, all.first_sample + l * capacity, std::min(capacity, all.count - l * capacity)};
      for (std::size_t k = 0; k < kernel.parameters.size(); ++k)
        if (const void* const first = all.numbers.parameter_gradient[k])
          look(leaf, place::parameter_gradient, k,
               static_cast<const std::byte*>(first) + std::size_t(l * leaves.gradient_stride) * element_size_,
               kernel.parameters[k].size);
    }
  }

  void look(const part& of, place where, std::size_t index, const void* first, std::size_t size, bool is_narrow = false) {
    const core::number_reader* const reader = of.numbers.reader;
    if (!first || all_finite(reader, first, size, is_narrow)) return;
    std::size_t element = 0;
    if (reader)
      element = reader->first_not_finite(first, size, is_narrow);
    else
      while (std::isfinite(number(reader, first, element, is_narrow))) ++element;
    const bool forward = of.call.direction == core::pass_direction::forward;
    finding here{state_->step,
                 of.call.direction,
                 forward ? of.call.group : -of.call.group,
                 of.first_sample,
                 element,
                 where,
                 int(index),
                 of.call.group,
                 of.count,
                 number(reader, first, element, is_narrow),
                 {}};
    const std::lock_guard lock(mutex_);
    const bool same_place = found_ && found_->key() == here.key();  // reported by several ranks that divide the layer
    if (found_ && !same_place && found_->key() < here.key()) return;
    const auto& parameters = kernels_[std::size_t(of.call.group)].parameters;
    for (std::size_t k = 0; k < parameters.size(); ++k)
      if (!all_finite(reader, of.numbers.parameter[k], parameters[k].size))
        here.parameters += detail::text_of({here.parameters.empty() ? "" : ", ", parameters[k].name});
    if (!same_place || !here.parameters.empty()) found_ = std::move(here);
  }

  /// Reads element i as a double. Only arrays of devices, which have a reader, are narrow.
  double number(const core::number_reader* reader, const void* first, std::size_t i, bool is_narrow) const {
    if (reader) return reader->number(first, i, is_narrow);
    return element_size_ == sizeof(double) ? static_cast<const double*>(first)[i] : double(static_cast<const float*>(first)[i]);
  }
  /// Uses that 0 * x is nan if x is not finite.
  template <class T>
  static bool all_finite_of(const T* values, std::size_t size) {
    T sums[16] = {};
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
      for (std::size_t k = 0; k < 16; ++k) sums[k] += values[i + k] * T(0);
    for (; i < size; ++i) sums[0] += values[i] * T(0);
    T all = 0;
    for (const T each : sums) all += each;
    return all == T(0);
  }
  bool all_finite(const core::number_reader* reader, const void* first, std::size_t size, bool is_narrow = false) const {
    if (reader) return reader->first_not_finite(first, size, is_narrow) == size;
    return element_size_ == sizeof(double) ? all_finite_of(static_cast<const double*>(first), size)
                                           : all_finite_of(static_cast<const float*>(first), size);
  }

  std::string text_of_finding(const training_state& s) const {
    const finding& it = *found_;
    const core::listed_kernel& kernel = kernels_[std::size_t(it.group)];
    const auto at_sample = [&](std::size_t size) {
      return detail::text_of({" is ", it.value, " at sample ", it.first + std::int64_t(it.element / size), " of the batch"});
    };
    const std::string name = detail::text_of({kernel.layers, " (", kernel.operations, ')'});
    std::string out;
    switch (it.where) {
      case place::input: {
        const std::size_t size = kernel.inputs[std::size_t(it.index)].size;
        const bool is_at_hand = s.name_of_sample && it.steps_before + 1 == s.step;
        return detail::text_of({"the data", at_sample(size), ", number ", it.element % size, is_at_hand ? " (in the data: " : "",
                                is_at_hand ? s.name_of_sample(int(it.first) + int(it.element / size)) : "",
                                is_at_hand ? ")" : ""});
      }
      case place::output: {
        const std::size_t size = std::size_t(kernel.output.size());
        out = detail::text_of({"the output of ", name, at_sample(size), ", element ", it.element % size, " of ",
                               detail::shape_text(kernel.output)});
        break;
      }
      case place::input_gradient: {
        const auto& input = kernel.inputs[std::size_t(it.index)];
        out = detail::text_of({"the gradient that ", name, " passes on to ", input.name, at_sample(input.size)});
        break;
      }
      case place::parameter_gradient:
        out =
            detail::text_of({"the gradient of ", kernel.parameters[std::size_t(it.index)].name, " is ", it.value, " at element ",
                             it.element, ", after samples ", it.first, " to ", it.first + it.count - 1, " of the batch"});
    }
    if (!it.parameters.empty()) return detail::text_of({out, "; not finite before this step: ", it.parameters});
    return out;
  }
};
static_assert(core::callback<check_numerics>);

}  // namespace strata
