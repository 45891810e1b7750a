// The engine of toy_device: what a backend needs besides kernels and a device.
#pragma once
#include <algorithm>
#include <strata/concepts/engine.hpp>
#include <strata/program/device_batch.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <strata/program/pass.hpp>
#include <utility>
#include <vector>

#include "toy_device.hpp"

namespace strata::test {
using namespace core;

template <class Program>
class toy_engine {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  using sums_of_leaf = leaf_sums<Program, toy>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, toy>;
  static constexpr purpose inferring = infers_differently<Program> ? purpose::inference : purpose::training;
  static constexpr const end_sizes& ends = ends_of_program<Program>;
  static_assert(plan.derived == 0, "the kernels of the reference derive nothing");
  template <class V>
  using buffer = toy_device::buffer<V>;
  template <purpose Why>
  using pass = strata::detail::pass<Program, toy, Why>;

  toy_device on_;
  toy_device::queue queue_ = on_.make_queue();
  leaf_schedule<T> leaves_;
  device_batch<T, toy_device> memory_of_batch_{ends, truths_of_program<Program>};
  buffer<T> weights_, slots_;
  buffer<double> statistics_, sums_;
  std::vector<double> host_sums_;
  std::vector<buffer<T>> gradients_;
  std::vector<workspace<Program, toy, purpose::training>> works_;  // of each leaf
  workspace<Program, toy, inferring> inference_work_;
  bool sums_are_on_host_ = false;

  // State of the current step.
  samples<T> host_batch_;
  step_context<T, toy_device> context_;
  kernel_observer* observer_ = nullptr;
  std::vector<bool> is_frozen_ = std::vector<bool>(std::size_t(layout.trainable));  // each element
  std::vector<trained_group> groups_;                                               // empty: nothing is frozen

 public:
  using program = Program;
  using backend = toy;
  using device = toy_device;
  using value_type = T;
  using options = compute_options;
  static constexpr engine_traits traits{.freezes = true};

  toy_engine(compute_options, leaf_policy policy, int slots)
      : leaves_(policy, ends),
        weights_(on_.allocate<T>(std::size_t(layout.size))),
        slots_(on_.allocate<T>(std::size_t(layout.trainable * slots))),
        statistics_(on_.allocate<double>(sums_of_leaf::statistics)) {}

  void observe(kernel_observer* observer) { observer_ = observer; }
  void freeze(std::span<const bool> slots) {
    const auto ranges = trained_ranges(layout, slots);
    for (const parameter_range& p : ranges.span()) std::fill(is_frozen_.begin() + p.begin, is_frozen_.begin() + p.end, p.frozen);
    groups_ = trained_groups(plan, layout, slots);
  }

  const toy_device& on() const { return on_; }
  toy_device::queue queue() const { return queue_; }

  void read_parameters(std::span<T> to) const { read(weights_, to); }
  void write_parameters(std::span<const T> from) { on_.copy_to_device(queue_, from, weights_.data()); }
  void read_slots(std::span<T> to) const { read(slots_, to); }
  void write_slots(std::span<const T> from) { on_.copy_to_device(queue_, from, slots_.data()); }

  int prepare(int batch, purpose why, int processes) {
    const batch_division most = leaves_.grow(batch, why);
    if (most.leaves == 0) return 0;
    if (std::size_t(most.leaves) * sums_of_leaf::size > host_sums_.size()) {
      host_sums_.resize(std::size_t(most.leaves) * sums_of_leaf::size);
      sums_ = on_.allocate<double>(host_sums_.size());
    }
    memory_of_batch_.grow(on_, batch);
    if (why == purpose::inference)
      inference_work_.prepare(on_, most.capacity, most.capacity);
    else
      share_among(processes);
    return most.leaves;
  }
  void share_among(int processes) {
    const batch_division most = leaves_.most_of_one(processes);
    while (int(gradients_.size()) < most.leaves) gradients_.push_back(on_.allocate<T>(std::size_t(layout.trainable)));
    leaves_.gradient_places().grow(gradients_.size());
    for (std::size_t i = 0; i < gradients_.size(); ++i) leaves_.gradient_places()[i] = gradients_[i].data();
    works_.resize(gradients_.size());
    for (auto& each : works_) each.prepare(on_, most.capacity, most.capacity);
  }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    host_batch_ = batch;
    leaves_.begin(memory_of_batch_.copy(on_, queue_, batch), rank, processes);
    context_ = {weights_.data(), nullptr, statistics_.data(), double(batch.count), random, queue_};
    if (why == purpose::training) {
      context_.observer = observer_, context_.on = &on_;
      context_.trained = groups_.empty() ? nullptr : groups_.data();
    }
    std::ranges::fill(host_sums_, 0.0);
    on_.copy_to_device(queue_, std::span<const double>(host_sums_), sums_.data());
    sums_are_on_host_ = false;
  }
  int leaves() const { return leaves_.leaves(); }

  void forward(int segment) {
    for_own_leaves([&](auto& pass, int) { pass.forward(segment); });
  }
  template <class Done>
  void forward_backward(Done&& done) {
    constexpr int last = plan.segment_count - 1;
    for (int i = 0; i < leaves_.own().size(); ++i) clear(gradients_[std::size_t(i)]);
    for_own_leaves([&](auto& pass, int l) {
      pass.forward(last);
      measure(pass.predictions(), l);
      pass.backward(last, true, done);
    });
  }
  void backward(int segment) {
    for_own_leaves([&](auto& pass, int) { pass.backward(segment, true); });
  }

  double* sums(int l) {
    if (!std::exchange(sums_are_on_host_, true)) {
      std::vector<double> all(host_sums_.size());
      on_.copy_to_host(queue_, static_cast<const double*>(sums_.data()), std::span(all));
      on_.wait(queue_);
      for (int i = leaves_.own().begin; i < leaves_.own().end; ++i)
        std::copy_n(all.data() + std::size_t(i) * sums_of_leaf::size, sums_of_leaf::size,
                    host_sums_.data() + std::size_t(i) * sums_of_leaf::size);
    }
    return host_sums_.data() + std::size_t(l) * sums_of_leaf::size;
  }
  void set_statistics(int first, std::span<const double> values) {
    on_.copy_to_device(queue_, values, statistics_.data() + first);
  }
  leaf_gradients<T, toy_device> gradients() const { return leaves_.template gradients<toy_device>(); }
  static std::span<const double> penalties() { return {}; }

  /// Applies the rule of any optimizer, one element at a time.
  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, toy_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&](const auto& rule) {
      constexpr int slots = std::remove_cvref_t<decltype(rule)>::slots;
      std::vector<T*> arrays(gradient.arrays(), gradient.arrays() + gradient.count());
      queue_.enqueue([memory = &on_.shared->memory, rule, arrays, mean = gradient.mean(), weights = weights_.data(),
                      state = slots_.data(), frozen = is_frozen_] {
        T *const w = memory->contents(weights), *const s = slots > 0 ? memory->contents(state) : nullptr;
        for (long i = 0; i < layout.trainable; ++i) {
          if (frozen[std::size_t(i)]) continue;
          const auto sum = sum_of([&](int l) { return memory->contents(arrays[std::size_t(l)])[i]; }, 0, int(arrays.size()));
          [&]<int... Slot>(std::integer_sequence<int, Slot...>) {
            rule(w[i], mean.of(sum), s[Slot * layout.trainable + i]...);
          }(std::make_integer_sequence<int, slots>{});
        }
      });
    });
  }
  void update_state() {
    for (int k = 1; k < plan.segment_count; ++k)
      pass<purpose::training>(context_, works_[0], sums_at(0), leaves_.batch(), 0)
          .update_state(plan.first_of_segment[k], weights_.data());
  }

  void measure() {
    for (int l = leaves_.own().begin; l < std::min(leaves_.own().end, leaves_.occupied()); ++l) {
      const samples<T> mine = leaves_.rows_of(l);
      pass<inferring> each(context_, inference_work_, sums_at(l), mine, leaves_.first_of(l));
      each.infer();
      measure(each.predictions(), l);
    }
  }
  void predict(const output_rows<T>& out) {
    for (int l = 0; l < leaves_.occupied(); ++l) {
      const samples<T> mine = leaves_.rows_of(l);
      pass<inferring> each(context_, inference_work_, sums_at(l), mine, leaves_.first_of(l));
      each.predict();
      for (int k = 0; k < ends.output_count; ++k)
        on_.copy_to_host(queue_, each.predictions().at[k],
                         std::span(out.at[k] + leaves_.first_of(l) * ends.outputs[k], std::size_t(mine.count * ends.outputs[k])));
    }
    on_.wait(queue_);
  }

 private:
  void read(const buffer<T>& from, std::span<T> to) const {
    on_.copy_to_host(queue_, static_cast<const T*>(from.data()), to);
    on_.wait(queue_);
  }
  void clear(const buffer<T>& b) const {
    const std::vector<T> zeros(b.size());
    on_.copy_to_device(queue_, std::span<const T>(zeros), b.data());
  }
  sums_of_leaf sums_at(int l) const { return {leaves_.gradient_of(l), sums_.data() + std::size_t(l) * sums_of_leaf::size}; }
  template <class F>
  void for_own_leaves(F&& f) {
    sums_are_on_host_ = false;
    for (int l = leaves_.own().begin; l < std::min(leaves_.own().end, leaves_.occupied()); ++l) {
      const samples<T> mine = leaves_.rows_of(l);
      pass<purpose::training> each(context_, works_[std::size_t(l - leaves_.own().begin)], sums_at(l), mine, leaves_.first_of(l));
      f(each, l);
    }
  }
  /// Computes the metrics as one more kernel.
  void measure(output_rows<const T> predictions, int l) {
    sums_are_on_host_ = false;
    queue_.enqueue(
        [memory = &on_.shared->memory, predictions, mine = leaves_.rows_of(l, host_batch_), to = sums_at(l).metrics()]() mutable {
          for (const T*& each : predictions.at) each = memory->contents(each);
          strata::detail::measure<Program>(predictions, mine, memory->contents(to));
        });
  }
  template <class Value>
  static T sum_of(Value&& value, int first, int count) {
    if (count == 1) return value(first);
    const int left = int(std::bit_floor(unsigned(count - 1)));
    return sum_of(value, first, left) + sum_of(value, first + left, count - left);
  }
};

}  // namespace strata::test

namespace strata::core {
template <class Program>
struct engine_for<Program, test::toy> {
  using type = test::toy_engine<Program>;
};
}  // namespace strata::core
