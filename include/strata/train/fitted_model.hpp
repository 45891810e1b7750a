// fitted_model: the weights of a running fit, for hooks of callbacks that take it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/state/named_array.hpp>
#include <strata/state/time_split.hpp>
#include <strata/train/any_process_group.hpp>
#include <strata/train/model_view.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// What a hook reaches besides the training_state: `void on_epoch_end(training_state&, fitted_model&)`. A callback that also
/// predicts or evaluates keeps a reference to the trainer itself.
class fitted_model {
 public:
  /// All weights and state by name, in the layouts of Keras. If they are changed, all processes that train together must call
  /// weights_changed().
  virtual std::vector<named_array> weights() = 0;
  /// 4: the weights are float, 8: double.
  virtual std::size_t element_size() const = 0;
  virtual void weights_changed() = 0;
  /// The processes that train together. is_chief() is true in the one that prints and writes files.
  virtual core::any_process_group& group() = 0;
  /// A view of the same weights, with the network and the optimizer, for code that reads and writes files.
  virtual model_view view() = 0;
  /// Like view(), but includes a sharded state of the optimizer. A collective call of all processes that train together.
  virtual model_view complete_view() { return view(); }

  /// Adds an observer that is called for each kernel of the training steps, from the next step until fit ends.
  virtual void observe(core::kernel_observer&) = 0;
  /// Enables or disables gradients() from the next step on, which costs a pass over them in each step. Throws
  /// strata_error with parameter servers, to which each worker sends gradients of its own.
  virtual void keep_gradients(bool keep) = 0;
  /// Gradients of the last step, by the names of the weights: the mean over the samples of all processes, before penalties and
  /// clipping. Empty unless keep_gradients(true) was called.
  virtual std::vector<named_array> gradients() = 0;
  /// The kernels that an observer sees, by their group.
  virtual std::vector<core::listed_kernel> kernels() const = 0;
  /// Time of this process, since fit began.
  virtual time_split time() const = 0;

 protected:
  fitted_model() = default;
  fitted_model(const fitted_model&) = default;
  ~fitted_model() = default;
};

namespace detail {

/// The parameters of an arena whose offset is below `end`.
template <class Network, class T>
std::vector<named_array> arrays_of(std::span<T> arena, long end) {
  std::vector<named_array> out;
  const std::vector<std::string> names = parameter_names_of<Network>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const parameter_slot& slot = slots_of<Network>()[i];
    if (slot.offset >= end) continue;
    std::vector<std::uint64_t> extents;
    for (int axis = 0; axis < slot.what.extents.rank(); ++axis) extents.push_back(std::uint64_t(slot.what.extents[axis]));
    const std::size_t count = std::size_t(slot.what.extents.size());
    out.push_back({names[i], std::move(extents), std::as_writable_bytes(arena.subspan(std::size_t(slot.offset), count))});
  }
  return out;
}

template <class Program, class Executor>
class please_include_strata_train_fitted_model final : public fitted_model {
  Executor& executor_;
  any_process_group& group_;
  const time_split& time_;
  static constexpr bool keeps_gradients = Executor::traits.keeps_gradients;
  kernel_observers observers_;
  const double communicated_ = executor_.communicating(), waited_ = executor_.waiting();

 public:
  please_include_strata_train_fitted_model(Executor& executor, any_process_group& group, const time_split& time)
      : executor_(executor), group_(group), time_(time) {}
  ~please_include_strata_train_fitted_model() {
    executor_.observe(nullptr);
    if constexpr (keeps_gradients) executor_.keep_gradient(false);
  }

  std::vector<named_array> weights() override {
    const auto arena = executor_.parameters();
    return arrays_of<typename Program::network>(arena, long(arena.size()));
  }
  std::size_t element_size() const override { return sizeof(typename Program::value_type); }
  void weights_changed() override { executor_.parameters_changed(); }
  any_process_group& group() override { return group_; }
  model_view view() override { return view_of_training<Program>(executor_); }
  model_view complete_view() override { return view_of_training<Program>(executor_, true); }

  void observe(kernel_observer& observer) override {
    observers_.add(observer);
    executor_.observe(&observers_);
  }
  void keep_gradients([[maybe_unused]] bool keep) override {
    if constexpr (keeps_gradients)
      executor_.keep_gradient(keep);
    else
      throw_error("keep_gradients: the executor of this strategy, such as parameter_server, keeps no gradients");
  }
  std::vector<named_array> gradients() override {
    if constexpr (keeps_gradients) {
      const auto kept = executor_.gradient();
      using T = typename Program::value_type;
      if (!kept.empty())
        return arrays_of<typename Program::network>(std::span(const_cast<T*>(kept.data()), kept.size()), long(kept.size()));
    }
    return {};
  }
  std::vector<listed_kernel> kernels() const override {
    if constexpr (requires { executor_.kernels(); })
      return executor_.kernels();
    else if constexpr (requires { typename Executor::backend; })
      return kernel_list<Program, typename Executor::backend>();
    else
      return {};
  }
  time_split time() const override {
    time_split now = time_;
    now.communication = executor_.communicating() - communicated_;
    now.waiting = executor_.waiting() - waited_;
    return now;
  }
};

}  // namespace detail
}  // namespace strata
