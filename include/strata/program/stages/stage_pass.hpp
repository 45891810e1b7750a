// One stage of a program computes one micro-batch: which kernels run, and their operands.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <strata/program/pass.hpp>
#include <strata/program/stages/stage_plan.hpp>

namespace strata::detail {

/// The memory of one stage for several micro-batches at a time, which have numbers. Each is of up to `capacity` samples.
template <class T, class Device>
class stage_memory {
  typename Device::template buffer<T> own_, received_;
  int own_size_ = 0, received_size_ = 0, in_flight_ = 1, capacity_ = 0;

 public:
  void prepare(const Device& on, int own_size, int received_size, int in_flight, int capacity) {
    if (capacity <= capacity_) return;
    own_size_ = own_size, received_size_ = received_size, in_flight_ = in_flight, capacity_ = 0;
    const auto renew = [&](auto& memory, long size) {
      memory = {};  // there may not be room for both
      memory = on.template allocate<T>(std::size_t(size) * std::size_t(capacity));
      if constexpr (Device::is_host) poison(memory.span());
    };
    renew(own_, long(own_size) * in_flight);
    renew(received_, long(received_size) * (in_flight + 1));
    capacity_ = capacity;
  }
  T* at(stage_location where, int number) {
    if (where.offset < 0) return nullptr;
    return where.received ? received_.data() + (long(number % (in_flight_ + 1)) * received_size_ + where.offset) * capacity_
                          : own_.data() + (long(number % in_flight_) * own_size_ + where.offset) * capacity_;
  }
};

/// number: of the micro-batch `batch`, of which the first sample is sample `first` of the global batch.
template <class Program, class Backend, purpose Why = purpose::training>
class stage_pass : kernel_calls<Program, Backend, Why> {
  using calls = kernel_calls<Program, Backend, Why>;
  using calls::plan, calls::code, calls::run, calls::trains, calls::step_;
  using typename calls::T, typename calls::device;
  static constexpr const auto& stages = stage_plan_of<Program, Backend, Why>;

  stage_memory<T, device>& memory_;
  T* scratch_;
  int number_;

 public:
  stage_pass(const step_context<T, device>& step, stage_memory<T, device>& memory, T* scratch, leaf_sums<Program, Backend> sums,
             const samples<T>& batch, std::int64_t first, int number)
      : calls(step, sums, batch, first), memory_(memory), scratch_(scratch), number_(number) {}

  /// A step that computes. adds: the micro-batch is not the first of its leaf.
  void compute(const stage_step& step, bool adds) {
    const int g = step.which;
    if (step.does == stage_action::forward)
      run(code[std::size_t(g)].forward, of(g), g, pass_direction::forward);
    else if (trains(g))
      backward(step.does, g, adds);
  }
  /// A forward step after training. is_measured: there are labels; else the kernel of a loss only computes predictions.
  void infer(const stage_step& step, bool is_measured) {
    operands<T> o = of(step.which);
    if (!is_measured) o.loss = nullptr;
    detail::launch(step_.queue, code[std::size_t(step.which)].infer, o);
  }

  /// Whether a kernel has to be prepared for a number of samples and leaves.
  static constexpr bool prepares = [] {
    for (const auto& each : code)
      if (each.prepare) return true;
    return false;
  }();
  std::shared_ptr<const void> prepare(int g, bool for_training) {
    const auto make = code[std::size_t(g)].prepare;
    return make ? make(step_.queue, of(g), for_training) : nullptr;
  }

  /// Of output k, which this stage computes.
  const T* predictions(int k) const {
    const int g = plan.output_group[k];
    return memory_.at(stages.output[g], number_);
  }
  bool group_trains(int g) const { return trains(g); }

 private:
  void backward(stage_action part, int g, bool adds) {
    operands<T> o = of(g);
    o.adds_dw = adds;
    if (const T* const weights = this->gradient_weights_of(g)) o.weights = weights;
    const auto any = [](const auto& gradients) { return std::ranges::count(gradients, nullptr) < std::ssize(gradients); };
    const bool has_parts = any(o.dw) && any(o.dx) && plan.groups[g].number_of_output < 0;
    const backward_order order = has_parts ? stages.order[g] : backward_order::whole;
    if (part != stage_action::backward && order == backward_order::whole) return;  // the other step does all
    if (part != stage_action::backward) std::ranges::fill(o.dx, nullptr);
    if (part == stage_action::backward && order != backward_order::whole) std::ranges::fill(o.dw, nullptr);
    // An observer counts the two parts of a backward as one call.
    const bool goes_on =
        part == stage_action::weights_first || (part == stage_action::backward && order == backward_order::input_first);
    run(code[std::size_t(g)].backward, o, g, pass_direction::backward, goes_on);
  }

  operands<T> of(int g) {
    operands<T> o = this->operands_of(
        g, [&](int k) { return memory_.at(stages.x[g][k], number_); },
        [&](int k) { return memory_.at(stages.dx[g][k], number_); });
    o.y = memory_.at(stages.output[g], number_);
    o.dy = memory_.at(stages.gradient[g], number_);
    o.saved = memory_.at(stages.saved[g], number_);
    o.scratch = scratch_;
    return o;
  }
};

}  // namespace strata::detail
