// One stage of a program computes one micro-batch: which kernels run, and their operands.
#pragma once
#include <span>
#include <strata/program/pass.hpp>
#include <strata/program/stage_plan.hpp>

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
template <class Program, class Backend>
class stage_pass : kernel_calls<Program, Backend, purpose::training> {
  using calls = kernel_calls<Program, Backend, purpose::training>;
  using calls::plan, calls::code, calls::run, calls::trains;
  using typename calls::T, typename calls::device;
  static constexpr const auto& stages = stage_plan_of<Program, Backend>;

  stage_memory<T, device>& memory_;
  T* scratch_;
  int number_;

 public:
  stage_pass(const step_context<T, device>& step, stage_memory<T, device>& memory, T* scratch, leaf_sums<Program, Backend> sums,
             const samples<T>& batch, std::int64_t first, int number)
      : calls(step, sums, batch, first), memory_(memory), scratch_(scratch), number_(number) {}

  void forward(int g) { run(code[std::size_t(g)].forward, of(g), g, pass_direction::forward); }

  /// Calls `wait` before the gradient of an input is computed, which may add to one that another stage sends, and `send` after.
  template <class Wait, class Send>
  void backward(int g, bool adds, Wait&& wait, Send&& send) {
    if (!trains(g)) {
      wait();
      return send();
    }
    operands<T> o = of(g);
    o.adds_dw = adds;
    // An observer counts the two parts of a backward as one call.
    const auto compute = [&](bool weights, bool input, bool goes_on) {
      operands<T> part = o;
      if (!weights) std::ranges::fill(part.dw, nullptr);
      if (!input) std::ranges::fill(part.dx, nullptr);
      run(code[std::size_t(g)].backward, part, g, pass_direction::backward, goes_on);
    };
    const auto any = [](const auto& gradients) { return std::ranges::count(gradients, nullptr) < std::ssize(gradients); };
    const bool has_parts = any(o.dw) && any(o.dx) && plan.groups[g].number_of_output < 0;
    const backward_order order = has_parts ? stages.order[g] : backward_order::whole;
    if (order == backward_order::weights_first) compute(true, false, true);
    wait();
    compute(order == backward_order::whole, true, order == backward_order::input_first);
    send();
    if (order == backward_order::input_first) compute(true, false, false);
  }

  /// Of output k, which this stage computes.
  const T* predictions(int k) const {
    const int g = plan.output_group[k];
    return memory_.at(stages.output[g], number_);
  }
  bool group_trains(int g) const { return trains(g); }

 private:
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
