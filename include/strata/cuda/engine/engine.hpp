// The engine of one or several GPUs. Each GPU has all weights and computes some leaves of a batch, all of its leaves in one call
// of each kernel. Leaves are added in the same tree on every device, so the weights stay equal, and the bits are those of one
// device. If one process has the whole batch, a step needs only its batch and a few values from the host, and is one graph for
// all devices.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <strata/concepts/engine.hpp>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/gradient_copies.hpp>
#include <strata/cuda/engine/host_copy.hpp>
#include <strata/cuda/engine/kept_samples.hpp>
#include <strata/cuda/engine/memory_need.hpp>
#include <strata/cuda/engine/nccl_sums.hpp>
#include <strata/cuda/engine/options.hpp>
#include <strata/cuda/engine/replica.hpp>
#include <strata/cuda/engine/step_graphs.hpp>
#include <strata/cuda/engine/step_sums.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::core {

template <class Program>
class cuda_engine {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  using sums_of_leaf = leaf_sums<Program, cuda>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, cuda>;
  static constexpr const auto& ends = ends_of_program<Program>;
  static constexpr auto trained = trained_ranges(layout);
  static_assert(plan.derived == 0, "the kernels of CUDA derive nothing from weights");
  using replica = cuda_replica<Program>;
  using sums_grid = typename step_sums<Program>::grid;

  /// For steps with batches of the same size: the optimizer and the gradient of their updates.
  struct update_of_step {
    const optimizer_type* rules;
    global_gradient<T, cuda_device> gradient;
    typename gradient_copies<T>::arrays arrays;
  };

  leaf_schedule<T> leaves_;
  host_copy sums_, penalties_;
  step_sums<Program> step_sums_;    // on the first device
  device_group<replica> replicas_;  // after the arrays that their queues may still write to
  gradient_copies<T> copies_{layout.trainable};
  step_graphs graphs_;
  int together_ = 1, staged_ = 0;  // steps of a launch, and those that the slot has
  bool is_staged_ = false;         // the step at hand is one of those
  std::optional<update_of_step> update_of_staged_;
  double kept_data_memory_;
  bool uses_graphs_;
  kernel_observer* observer_ = nullptr;
  std::vector<trained_group> groups_;  // empty: no layer was ever frozen at run time
  bool sums_by_nccl_;
  std::unique_ptr<nccl_sums<T>> nccl_;  // of several devices, if they add gradients so
  T* sum_[1] = {};

 public:
  using program = Program;
  using backend = cuda;
  using device = cuda_device;
  using value_type = T;
  using options = cuda_options;
  static constexpr engine_traits traits{.freezes = true,
                                        .updates_at_once = true,
                                        .defers_sums = true,
                                        .keeps_samples = ends.input_count == 1 && ends.output_count == 1};

  /// Throws strata_error if there is no such device, if its memory is too small, or for options that check() refuses.
  cuda_engine(const cuda_options& o, leaf_policy policy, int slots)
      : leaves_(policy, ends),
        penalties_(std::size_t(trained.count)),
        kept_data_memory_(o.kept_data_memory),
        uses_graphs_(o.graphs),
        sums_by_nccl_(o.sums_by_nccl) {
    if (o.devices.empty()) throw_error("cuda_options: at least one device is needed");
    o.check();
    if (sums_by_nccl_) machine::need_nccl();
    detail::name_need_on_failure(
        [&] {
          for (const int index : o.devices) replicas_.add(devices(), index, slots);
        },
        [&](int) { return ". Without batches, a GPU needs " + detail::text_of_needs(replica::arenas(slots)); });
    replicas_.enable_peer_access();
    step_sums_.allocate(first());
  }

  /// Throws strata_error for an observer that reads arrays as if they were in host memory.
  void observe(kernel_observer* observer) {
    const bool reads = observer && observer->reads_gradients();
    if (reads && !observer->reads_devices())
      throw_error("an observer that reads numbers of layers, but not by their number_reader, needs a strategy on the CPU");
    launch_staged();
    for (replica& r : replicas_) r.reader = reads ? std::make_unique<device_numbers<T>>(r.on, r.queue) : nullptr;
    observer_ = observer;
  }
  void freeze(std::span<const bool> slots) {
    launch_staged();
    const auto ranges = trained_ranges(layout, slots);
    groups_ = trained_groups(plan, layout_of<typename Program::items>, slots);
    graphs_.drop(replicas_);
    for (replica& r : replicas_) {
      r.update.set_ranges(ranges.span());
      r.prepared.clear();    // other gradients are wanted
      r.clear(r.gradients);  // no kernel stores those of frozen parameters
    }
  }

  bool adds_by_nccl() const { return sums_by_nccl_; }
  int devices() const { return int(replicas_.size()); }
  /// Joins the devices of this process to those of all: they are the ranks from `rank` on of `ranks`.
  void connect(const machine::nccl_id& group, int rank, int ranks, std::vector<gradient_bucket> buckets, nccl_watch watch) {
    std::vector<int> indices;
    for (replica& r : replicas_) indices.push_back(r.on.index());
    nccl_ = nullptr;
    nccl_ = std::make_unique<nccl_sums<T>>(indices, group, rank, ranks, std::move(buckets), layout.trainable, std::move(watch));
    begin_sums();  // a step may be under way
  }

  /// Each replica gets a copy, if each device has room for those of its replicas: cuda_options::kept_data_memory of the memory
  /// that is free now.
  bool keep_samples(const stored_samples& set)
    requires(ends.input_count == 1 && ends.output_count == 1)
  {
    release_samples();
    if (!has_room_for_copies(replicas_, set, kept_data_memory_)) return false;
    try {
      for (replica& r : replicas_) r.kept.keep(r.on, r.queue, set);
      grow_steps();
    } catch (const out_of_device_memory&) {
      release_samples();
      return false;
    }
    return true;
  }
  void release_samples() {
    launch_staged();
    for (replica& r : replicas_) {
      if (r.kept.empty()) continue;
      graphs_.drop(replicas_);
      r.kept = {};
    }
  }

  const cuda_device& on() const { return first().on; }
  machine::queue queue() const { return first().queue; }

  void read_parameters(std::span<T> to) { read(first().weights, to); }
  void write_parameters(std::span<const T> from) {
    launch_staged();
    for (replica& r : replicas_) r.write(from, r.weights.data());
  }
  void read_slots(std::span<T> to) { read(first().slots, to); }
  void write_slots(std::span<const T> from) {
    launch_staged();
    for (replica& r : replicas_) r.write(from, r.slots.data());
  }

  int prepare(int batch, purpose why, int processes) {
    const batch_division most = leaves_.grow(batch, why);
    if (most.leaves == 0) return 0;
    launch_staged();
    detail::forget_on_failure(
        leaves_, [&] { allocate(most, batch, why, processes); }, [&] { release_memory_of_batch(); },
        [&](int) { return needed(most, batch, why, processes); });
    return most.leaves;
  }
  void share_among(int processes) {
    launch_staged();
    const batch_division most = leaves_.most_of_one(processes);
    const int leaves = share(most.leaves), rows = rows_to_train(most);
    graphs_.drop(replicas_);
    for (replica& r : replicas_) {
      r.grow(r.gradients, std::size_t(leaves) * std::size_t(layout.trainable));
      r.grow(r.sums, std::size_t(leaves) * sums_of_leaf::size);
      if (replicas_.size() > 1) r.grow(r.all_sums, std::size_t(most.leaves) * sums_of_leaf::size);
      r.batches.grow(rows);
      r.training.prepare(r.on, rows, rows);
    }
    grow_steps();
  }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    if (batch.count > leaves_.prepared_for(why)) prepare(batch.count, why, processes);  // memory had run out
    is_staged_ = why == purpose::training && batch.stored && together_ > 1 && launches_graphs() && !observer_;
    if (!is_staged_ || batch.count != leaves_.batch().count) launch_staged();
    leaves_.begin(batch, rank, processes);
    sums_.outdate();
    sums_.set_to_zero();
    for (replica& r : replicas_) {
      r.context = {r.weights.data(), nullptr, r.statistics.data(), double(batch.count), random, r.queue};
      if (why == purpose::inference) continue;
      r.context.observer = observer_, r.context.on = &r.on, r.context.reader = r.reader.get();
      r.context.trained = groups_.empty() ? nullptr : groups_.data();
    }
    share_leaves(leaves_.own(), why, processes);
    if (layout.has_regularizers()) penalties_.outdate();
  }
  int leaves() const { return leaves_.leaves(); }

  void forward(int segment) {
    for_each_replica(&replica::training, [&](replica&, auto& pass) { pass.forward(segment); });
  }
  template <class Done>
  void forward_backward(Done&& done) {
    penalize();
    std::vector<int> passed;
    for_each_replica(&replica::training, [&](replica& r, auto& pass) {
      passed.clear();
      pass.forward_backward([&](int g) {
        passed.push_back(g);
        if (nccl_) nccl_->passed(r.number, r.queue, r.own.size(), g);
      });
    });
    end_backward(plan.segment_count - 1);
    if constexpr (plan.segment_count == 1)
      for (const int g : passed)
        for (int l = 0; l < leaves_.own().size(); ++l) done(g);
  }
  void backward(int segment) {
    for_each_replica(&replica::training, [&](replica& r, auto& pass) {
      pass.backward(segment, false, [&](int g) {
        if (nccl_) nccl_->passed(r.number, r.queue, r.own.size(), g);
      });
    });
    end_backward(segment);
  }

  double* sums(int l) {
    launch_staged();
    const auto copy = [&](std::span<double> to) {
      if (nccl_)
        for (replica& r : replicas_) nccl_->wait(r.queue);  // a copy would wait without end for a process that has ended
      for (replica& r : replicas_)
        r.read(r.sums.data(),
               to.subspan(std::size_t(r.own.begin) * sums_of_leaf::size, std::size_t(r.own.size()) * sums_of_leaf::size));
      for (replica& r : replicas_) wait_for(r);
    };
    return sums_.get(copy).data() + std::size_t(l) * sums_of_leaf::size;
  }
  /// Between two segments, if one process has the whole batch: adds up the statistics of all leaves on the devices.
  void add_statistics(int segment, int direction) {
    const kernel_group& g = plan.groups[plan.first_of_segment[segment]];
    const int first = g.statistics + direction * g.kernel.statistics;
    if (replicas_.size() > 1) replicas_.wait_for_each_other();
    for (replica& r : replicas_)
      machine::for_each_index(
          r.queue, g.kernel.statistics,
          machine::sum_statistics{r.sums_of_all(replicas_, first, leaves_.leaves()), r.statistics.data() + first});
  }
  void set_statistics(int first, std::span<const double> values) {
    for (replica& r : replicas_) r.write(values, r.statistics.data() + first);
  }
  /// With NCCL, a single array: the sum over all leaves of all processes.
  leaf_gradients<T, cuda_device> gradients() const {
    if (nccl_) return {sum_, 1, 0, leaves_.leaves(), leaves_.leaves()};
    return leaves_.template gradients<cuda_device>();
  }
  std::span<const double> penalties() {
    return penalties_.get([&](std::span<double> to) {
      first().update.read_penalties(to);
      first().wait();
    });
  }

  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, cuda_device>& gradient) {
    replicas_.wait_for_each_other();  // the reduction may have written on the queue of the first
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    for (replica& r : replicas_) r.update.tell_numbers(now);
    const auto arrays = all_arrays(gradient);
    copy_gradients(gradient, arrays);
    for (replica& r : replicas_)
      r.update_weights(rules, r.update.told_numbers(), gradient.at(arrays[std::size_t(r.number)].data()), sums_grid{});
  }
  void update_state() {
    for (replica& r : replicas_)
      for (int k = 1; k < plan.segment_count; ++k) r.pass_in(r.training).update_state(plan.first_of_segment[k], r.weights.data());
  }

  /// True if train_at_once can compute the step: not if an observer has to see each kernel.
  bool updates_at_once(const optimizer_type&) const { return !observer_; }
  /// The whole step, if one process has the whole batch. The host waits for nothing but the copy of the batch before the last.
  template <class Reduction>
  step_result<Program> train_at_once(const optimizer_type& rules, long step, double rate, Reduction reduction) {
    const auto gradient = reduction.reduce(gradients(), leaves_.batch().count);
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    const std::int64_t number = step_sums_.next();
    for (replica& r : replicas_) r.batches.numbers().update = now, r.batches.numbers().step = number;
    sums_.outdate();
    if (!is_staged_) {
      launch_step({&rules, gradient, all_arrays(gradient)});
    } else {
      if (staged_ == 0) update_of_staged_ = {&rules, gradient, all_arrays(gradient)};
      if (++staged_ == together_) launch_staged();
    }
    return {*this, number};
  }
  /// If n > 1, steps whose data set is on the device are launched n at a time. First launches all staged steps.
  void launch_together(long n) {
    launch_staged();
    together_ = int(std::clamp(n, 1L, detail::most_steps_of_launch));
    grow_steps();
  }
  /// See step_result.
  metric_sums<Program> sums_of_step(long number) {
    return step_sums_.of_step(number, first(), [&](const auto& copy) {
      launch_staged();
      if (nccl_) nccl_->wait(first().queue);  // see sums()
      copy();
      wait_for(first());
    });
  }

  void measure() {
    penalize();
    for_each_replica(&replica::inference, [](replica&, auto& pass) { pass.infer(); });
  }
  void predict(const output_rows<T>& out) {
    const leaf_range all{0, leaves_.leaves()};
    if (leaves_.own() != all) share_leaves(all, purpose::inference, 1);  // else begin() has done it
    for_each_replica(&replica::inference, [](replica&, auto& pass) { pass.predict(); });
    for_each_replica(&replica::inference, [&](replica& r, auto& pass) {  // a copy to pageable memory waits for its queue
      const output_rows<const T> predictions = pass.predictions();
      for (int k = 0; k < ends.output_count; ++k)
        r.read(predictions.at[k], {out.at[k] + first_row(r) * ends.outputs[k], std::size_t(r.batch.count * ends.outputs[k])});
    });
    replicas_.wait();
  }

 private:
  replica& first() { return replicas_[0]; }
  const replica& first() const { return replicas_[0]; }
  int share(int leaves) const { return (leaves + int(replicas_.size()) - 1) / int(replicas_.size()); }
  long first_row(const replica& r) const { return std::min(leaves_.first_of(r.own.begin), long{leaves_.batch().count}); }

  int rows_to_train(batch_division most) const {
    return std::min(leaves_.prepared_for(purpose::training), share(most.leaves) * most.capacity);
  }
  /// Allocates the slots for the steps of a launch.
  void grow_steps() {
    const int rows = rows_to_train(leaves_.most_of_one(1));
    if (together_ == 1 || first().kept.empty() || !launches_graphs() || first().batches.has_steps(together_, rows)) return;
    graphs_.drop(replicas_);
    for (replica& r : replicas_) r.batches.grow_steps(together_, rows);
  }

  void read(const cuda_device::buffer<T>& from, std::span<T> to) {
    launch_staged();
    first().read(from.data(), to);
    first().wait();
  }
  void wait_for(const replica& r) { nccl_ ? nccl_->wait(r.queue) : r.wait(); }
  [[gnu::cold]] std::string needed(batch_division most, int batch, purpose why, int processes) const {
    const int of_one = why == purpose::training ? leaves_.most_of_one(processes).leaves : most.leaves;
    const long leaves = share(of_one);
    // The first device has the fewest leaves.
    const long copied = why == purpose::training && !sums_by_nccl_ ? gradient_copies<T>::copies_of(of_one, 0, devices()) : 0;
    return first().needed(why, batch, leaves, int(std::min(long{batch}, leaves * most.capacity)), copied);
  }
  void allocate(batch_division most, int batch, purpose why, int processes) {
    sums_.grow(std::size_t(most.leaves) * sums_of_leaf::size);
    const int leaves = share(most.leaves), rows = std::min(batch, leaves * most.capacity);
    graphs_.drop(replicas_);
    for (replica& r : replicas_) {
      r.batches.grow(rows);
      r.grow(r.sums, std::size_t(leaves) * sums_of_leaf::size);
      if (why == purpose::inference) r.inference.prepare(r.on, rows, rows);
    }
    if (why != purpose::training) return;
    share_among(processes);
    if (processes == 1 && !sums_by_nccl_) copies_.reserve(replicas_, most.leaves);
    if (sums_by_nccl_ && processes == 1 && devices() > 1 && !nccl_)
      connect(machine::make_nccl_id(), 0, devices(), gradient_buckets<Program, cuda>(0), {});
  }

  /// Frees the memory whose size depends on the batch.
  void release_memory_of_batch() {
    replicas_.wait();
    graphs_.drop(replicas_);
    for (replica& r : replicas_) r.release_memory_of_batch();
    copies_.release();
  }
  /// Gives each device its part of some leaves, and their samples, and prepares its kernels for them. A library needs memory
  /// while it measures its algorithms; if there is too little, the memory of the batch is freed for it.
  void share_leaves(leaf_range all, purpose why, int processes) {
    const auto share = [&] {
      prepare(leaves_.batch().count, why, processes);
      divide(all);
      if (why == purpose::training) place_gradients();
      for (replica& r : replicas_) r.prepare_kernels(why);
    };
    detail::with_room_to_choose(leaves_, share, [&] { release_memory_of_batch(); });
  }
  void divide(leaf_range all) {
    for (replica& r : replicas_) {
      const leaf_range part = share_of(all.size(), r.number, devices());
      r.own = {all.begin + part.begin, all.begin + part.end};
      const int capacity = int(leaves_.first_of(1));
      r.context.leaves = {r.own.size(), capacity, layout.trainable, long(sums_of_leaf::size)};
      const samples<T> rows = leaves_.batch().rows(r.own.begin * capacity, r.own.size() * capacity, ends);
      r.use_batch(is_staged_ ? r.batches.fill_step(rows, staged_) : r.batches.fill(rows));
      r.bring_random_numbers();
    }
  }
  void place_gradients() {
    std::size_t leaves = 0;
    for (replica& r : replicas_) leaves += std::size_t(r.own.size());
    auto& places = leaves_.gradient_places();
    places.grow(leaves);
    T** place = places.data();
    for (replica& r : replicas_)
      for (int l = 0; l < r.own.size(); ++l) *place++ = r.gradients.data() + long{l} * layout.trainable;
    if (nccl_) begin_sums();
  }
  void begin_sums() {
    for (replica& r : replicas_) nccl_->begin(r.number, r.gradients.data());
    sum_[0] = first().gradients.data();
  }
  void end_backward(int segment) {
    if (nccl_) {
      for (replica& r : replicas_)
        if (r.own.size() == 0) nccl_->passed(r.number, r.queue, 0, plan.first_of_segment[segment] + (segment > 0));
      if (segment == 0)
        for (replica& r : replicas_) nccl_->order_before(r.number, r.queue);
    }
    replicas_.wait_for_each_other();
  }

  /// Calls f(replica, pass) for each replica with leaves. memory: see cuda_replica::pass_in.
  template <class Work, class F>
  void for_each_replica(Work replica::* memory, F&& f) {
    sums_.outdate();
    for (replica& r : replicas_) {
      r.batches.send();
      if (r.own.size() == 0) continue;
      r.gather();
      auto each = r.pass_in(r.*memory, first_row(r));
      f(r, each);
    }
  }

  /// The penalties of the weights before the update.
  void penalize() {
    if constexpr (layout.has_regularizers()) first().update.penalize(first().weights.data());
  }

  bool launches_graphs() const { return uses_graphs_ && !nccl_; }
  /// Launches the current step by itself.
  void launch_step(const update_of_step& update) {
    for (replica& r : replicas_) r.batches.send();
    const auto enqueue = [&] { enqueue_step(update); };
    if (!launches_graphs()) return enqueue();
    std::uint32_t weighted = 0;
    for (int k = 0; k < ends.output_count; ++k) {
      const truth_rows<T>& truth = first().batch.truths[k];
      weighted |= std::uint32_t{truth.weights != nullptr} << k;
      weighted |= std::uint32_t{truth.gradient_weights != nullptr} << (max_ends + k);
    }
    graphs_.launch(replicas_, {leaves_.batch().count, first().batches.index(), 1, weighted, leaves_.batch().stored != nullptr},
                   enqueue);
  }
  /// Launches the staged steps: in one launch, or one by one if there are fewer than a launch has.
  void launch_staged() {
    const int steps = std::exchange(staged_, 0), slot = first().batches.index();
    if (steps == 0) return;
    if (steps < together_) {
      for (int s = 0; s < steps; ++s) {
        for (replica& r : replicas_) {
          r.use_batch(r.batches.fill(r.batches.indices_of_step(slot, s, r.batch.count)));
          r.batches.numbers() = r.batches.numbers_of_step(slot, s);
        }
        launch_step(*update_of_staged_);
      }
      return;
    }
    for (replica& r : replicas_) r.batches.send_steps(steps);
    graphs_.launch(replicas_, {leaves_.batch().count, slot, steps, 0, true}, [&] {
      for (int s = 0; s < steps; ++s) {
        for (replica& r : replicas_) r.use_batch(r.batches.at_step(s, r.batch.count));
        enqueue_step(*update_of_staged_);
      }
    });
  }

  /// All work of a step on all devices. It depends on the number of samples and on addresses, but not on the step.
  void enqueue_step(const update_of_step& with) {
    constexpr int last = plan.segment_count - 1;
    for (int k = 0; k < last; ++k) {
      forward(k);
      add_statistics(k + 1, 0);
    }
    forward_backward(detail::no_callback{});
    for (int k = last; k > 0; --k) {
      add_statistics(k, 1);
      backward(k - 1);
    }
    const sums_grid sums = step_sums_.store(first().sums_of_all(replicas_, long(sums_of_leaf::statistics), leaves_.leaves()),
                                            first().update.penalties(), &first().batches.numbers_on_device()->step);
    copy_gradients(with.gradient, with.arrays);
    for (replica& r : replicas_)
      r.update_weights(*with.rules, &r.batches.numbers_on_device()->update,
                       with.gradient.at(with.arrays[std::size_t(r.number)].data()), r.number == 0 ? sums : sums_grid{});
    if constexpr (last > 0) update_state();
  }
  /// The arrays of a gradient on each device, its own and those of copies.
  typename gradient_copies<T>::arrays all_arrays(const global_gradient<T, cuda_device>& gradient) {
    typename gradient_copies<T>::arrays all;
    if (nccl_)
      for (replica& r : replicas_) all.push_back({r.gradients.data()});
    else
      detail::name_need_on_failure(
          [&] { all = copies_.places(replicas_, gradient, [&] { graphs_.drop(replicas_); }); },
          [&](int) { return needed(leaves_.most_of_one(1), leaves_.batch().count, purpose::training, 1); });
    for (replica& r : replicas_) r.update.tell_arrays(all[std::size_t(r.number)]);
    return all;
  }
  void copy_gradients(const global_gradient<T, cuda_device>& gradient, const typename gradient_copies<T>::arrays& arrays) {
    if (replicas_.size() == 1) return;
    replicas_.wait_for_each_other();
    if (!nccl_) copies_.copy(replicas_, gradient, arrays);
    replicas_.wait_for_each_other();  // before the first array of any device is overwritten
  }
};

template <class Program>
struct engine_for<Program, cuda> {
  using type = cuda_engine<Program>;
};

}  // namespace strata::core
