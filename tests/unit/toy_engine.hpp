// The engine of toy_device: what a backend has to bring besides kernels and a device.
#pragma once
#include <algorithm>
#include <strata/concepts/engine.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/pass.hpp>
#include <utility>
#include <vector>

#include "toy_device.hpp"

namespace strata::test {

template <class Program>
class toy_engine {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  using sums_of_leaf = leaf_sums<Program, toy>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, toy>;
  static constexpr purpose inferring = infers_differently<Program> ? purpose::inference : purpose::training;
  static constexpr const end_sizes& ends = ends_of_program<Program>;
  static constexpr long input_size = ends.inputs[0], output_size = ends.outputs[0];
  static_assert(plan.derived == 0, "the kernels of the reference derive nothing");
  template <class V>
  using buffer = toy_device::buffer<V>;
  template <purpose Why>
  using pass = strata::detail::pass<Program, toy, Why>;

  toy_device on_;
  toy_device::queue queue_ = on_.make_queue();
  leaf_policy policy_;
  int slot_count_;
  buffer<T> weights_, slots_, x_, targets_;
  buffer<std::int32_t> labels_;
  buffer<double> statistics_, sums_;
  std::vector<double> host_sums_;
  std::vector<buffer<T>> gradients_;
  std::vector<T*> gradients_at_;
  std::vector<workspace<Program, toy, purpose::training>> works_;  // of each leaf
  workspace<Program, toy, inferring> inference_work_;
  bool sums_are_on_host_ = false;
  int prepared_for_[2] = {};
  batch_division most_;

  // Of the step at hand.
  samples<T> batch_, host_batch_;
  step_context<T, toy_device> context_;
  batch_division now_;
  leaf_range own_;

 public:
  using program = Program;
  using backend = toy;
  using device = toy_device;
  using value_type = T;
  using options = compute_options;

  toy_engine(compute_options, leaf_policy policy, int slots)
      : policy_(policy),
        slot_count_(slots),
        weights_(on_.allocate<T>(std::size_t(layout.size))),
        slots_(on_.allocate<T>(std::size_t(layout.trainable * slots))),
        statistics_(on_.allocate<double>(sums_of_leaf::statistics)) {}

  const toy_device& on() const { return on_; }
  toy_device::queue queue() const { return queue_; }

  void read_parameters(std::span<T> to) const { read(weights_, to); }
  void write_parameters(std::span<const T> from) { on_.copy_to_device(queue_, from, weights_.data()); }
  void read_slots(std::span<T> to) const { read(slots_, to); }
  void write_slots(std::span<const T> from) { on_.copy_to_device(queue_, from, slots_.data()); }

  int prepare(int batch, purpose why, int processes) {
    if (batch <= prepared_for_[int(why)]) return 0;
    prepared_for_[int(why)] = batch;
    const batch_division most = policy_.most(batch);
    if (std::size_t(most.leaves) * sums_of_leaf::size > host_sums_.size()) {
      host_sums_.resize(std::size_t(most.leaves) * sums_of_leaf::size);
      sums_ = on_.allocate<double>(host_sums_.size());
    }
    if (std::size_t(batch) > labels_.size()) {
      x_ = on_.allocate<T>(std::size_t(batch * input_size));
      targets_ = on_.allocate<T>(std::size_t(batch * output_size));
      labels_ = on_.allocate<std::int32_t>(std::size_t(batch));
    }
    if (why == purpose::inference) {
      inference_work_.prepare(on_, most.capacity, most.capacity);
    } else {
      most_ = most;
      share_among(processes);
    }
    return most.leaves;
  }
  void share_among(int processes) {
    const int share = (most_.leaves + processes - 1) / processes;
    while (int(gradients_.size()) < share) gradients_.push_back(on_.allocate<T>(std::size_t(layout.trainable)));
    gradients_at_.clear();
    for (const auto& each : gradients_) gradients_at_.push_back(each.data());
    works_.resize(gradients_.size());
    for (auto& each : works_) each.prepare(on_, most_.capacity, most_.capacity);
  }

  void begin(purpose, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    now_ = policy_(batch.count);
    own_ = share_of(now_.leaves, rank, processes);
    host_batch_ = batch;
    batch_ = {copied(x_, batch.x(), batch.count * input_size),
              {copied(labels_, batch.labels(), batch.count), copied(targets_, batch.targets(), batch.count * output_size)},
              batch.count};
    context_ = {weights_.data(), nullptr, statistics_.data(), double(batch.count), random, queue_};
    std::ranges::fill(host_sums_, 0.0);
    on_.copy_to_device(queue_, std::span<const double>(host_sums_), sums_.data());
    sums_are_on_host_ = false;
  }
  int leaves() const { return now_.leaves; }

  void forward(int segment) {
    for_own_leaves([&](auto& pass, int) { pass.forward(segment); });
  }
  template <class Done>
  void forward_backward(Done&& done) {
    constexpr int last = plan.segment_count - 1;
    for (int i = 0; i < own_.size(); ++i) clear(gradients_[std::size_t(i)]);
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
      for (int i = own_.begin; i < own_.end; ++i)
        std::copy_n(all.data() + std::size_t(i) * sums_of_leaf::size, sums_of_leaf::size,
                    host_sums_.data() + std::size_t(i) * sums_of_leaf::size);
    }
    return host_sums_.data() + std::size_t(l) * sums_of_leaf::size;
  }
  void set_statistics(int first, std::span<const double> values) {
    on_.copy_to_device(queue_, values, statistics_.data() + first);
  }
  leaf_gradients<T, toy_device> gradients() const {
    return {gradients_at_.data(), own_.size(), own_.begin, own_.end, now_.leaves};
  }
  static std::span<const double> penalties() { return {}; }

  /// The rule of any optimizer, one number at a time.
  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, toy_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&](const auto& rule) {
      constexpr int slots = std::remove_cvref_t<decltype(rule)>::slots;
      std::vector<T*> arrays(gradient.arrays(), gradient.arrays() + gradient.count());
      queue_.enqueue(
          [memory = &on_.shared->memory, rule, arrays, mean = gradient.mean(), weights = weights_.data(), state = slots_.data()] {
            T *const w = memory->contents(weights), *const s = slots > 0 ? memory->contents(state) : nullptr;
            for (long i = 0; i < layout.trainable; ++i) {
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
      pass<purpose::training>(context_, works_[0], sums_at(0), batch_, 0).update_state(plan.first_of_segment[k], weights_.data());
  }

  void measure() {
    for (int l = own_.begin; l < own_.end; ++l) {
      const samples<T> mine = share(batch_, l);
      if (mine.count == 0) continue;
      pass<inferring> each(context_, inference_work_, sums_at(l), mine, long(l) * now_.capacity);
      each.infer();
      measure(each.predictions(), l);
    }
  }
  void predict(T* out) {
    for (int l = 0; l < now_.leaves; ++l) {
      const samples<T> mine = share(batch_, l);
      if (mine.count == 0) continue;
      pass<inferring> each(context_, inference_work_, sums_at(l), mine, long(l) * now_.capacity);
      each.predict();
      on_.copy_to_host(queue_, each.predictions(),
                       std::span(out + long(l) * now_.capacity * output_size, std::size_t(mine.count * output_size)));
    }
    on_.wait(queue_);
  }

 private:
  void read(const buffer<T>& from, std::span<T> to) const {
    on_.copy_to_host(queue_, static_cast<const T*>(from.data()), to);
    on_.wait(queue_);
  }
  template <class V>
  const V* copied(const buffer<V>& to, const V* from, long size) const {
    if (!from) return nullptr;
    on_.copy_to_device(queue_, std::span<const V>(from, std::size_t(size)), to.data());
    return to.data();
  }
  void clear(const buffer<T>& b) const {
    const std::vector<T> zeros(b.size());
    on_.copy_to_device(queue_, std::span<const T>(zeros), b.data());
  }
  samples<T> share(const samples<T>& of, int l) const { return of.rows(l * now_.capacity, now_.capacity, ends); }
  sums_of_leaf sums_at(int l) const {
    const int i = l - own_.begin;
    return {i >= 0 && i < own_.size() && std::size_t(i) < gradients_at_.size() ? gradients_at_[std::size_t(i)] : nullptr,
            sums_.data() + std::size_t(l) * sums_of_leaf::size};
  }
  template <class F>
  void for_own_leaves(F&& f) {
    sums_are_on_host_ = false;
    for (int l = own_.begin; l < own_.end; ++l) {
      const samples<T> mine = share(batch_, l);
      if (mine.count == 0) continue;
      pass<purpose::training> each(context_, works_[std::size_t(l - own_.begin)], sums_at(l), mine, long(l) * now_.capacity);
      f(each, l);
    }
  }
  /// Metrics, as one more kernel.
  void measure(const T* predictions, int l) {
    sums_are_on_host_ = false;
    queue_.enqueue([memory = &on_.shared->memory, predictions, mine = share(host_batch_, l), to = sums_at(l).metric_sum_at(1)] {
      strata::detail::measure<Program>(memory->contents(predictions), mine, memory->contents(to));
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

namespace strata {
template <class Program>
struct engine_for<Program, test::toy> {
  using type = test::toy_engine<Program>;
};
}  // namespace strata
