// The engine of a program that is split into stages whose places are GPUs. A place has the parameters, slots, gradients and
// activations of its stages only. The host enqueues the steps of all places in an order in which none waits for what has not
// been enqueued: what one GPU sends another is a copy between devices, and the receiver's queue waits for its event.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/concepts/engine.hpp>
#include <strata/cuda/engine/cut_batch.hpp>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/engine/host_copy.hpp>
#include <strata/cuda/engine/memory_need.hpp>
#include <strata/cuda/engine/metrics.hpp>
#include <strata/cuda/engine/options.hpp>
#include <strata/cuda/engine/output_sums.hpp>
#include <strata/cuda/engine/place.hpp>
#include <strata/cuda/engine/place_contents.hpp>
#include <strata/cuda/engine/prepared_kernels.hpp>
#include <strata/cuda/engine/step_sums.hpp>
#include <strata/cuda/engine/transfer_events.hpp>
#include <strata/cuda/kernels/kernels.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/stage_pass.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::core {

/// A micro-batch is one or several whole leaves, so a place computes it in one call of each kernel, and the bits are those of one
/// GPU.
template <class Program, class Backend>
class cuda_split_engine {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  using sums_of_leaf = leaf_sums<Program, Backend>;
  using split = typename Backend::split;
  static constexpr const auto& table = split::table;
  using table_type = std::remove_cvref_t<decltype(table)>;
  static constexpr int places = table_type::places, stage_count = table_type::stages;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& ends = ends_of_program<Program>;
  static constexpr const auto& training_stages = stage_plan_of<Program, Backend>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr const auto& arenas = arenas_of_places<Program, Backend>;
  static constexpr purpose inferring = infers_differently<Program> ? purpose::inference : purpose::training;
  static_assert(plan.segment_count == 1 && plan.derived == 0);
  static_assert(table.is_complete() && detail::ends(training_stages, stage_steps_of<Program, Backend>, table) &&
                    detail::ends(stage_plan_of<Program, Backend, inferring>, stage_steps_of<Program, Backend, inferring>, table,
                                 false),
                "places would wait for each other forever");
  using contents = place_contents<Program, Backend>;
  using place = cuda_place<Program, Backend>;
  using sums_grid = typename step_sums<Program>::grid;
  using stage_memory = detail::stage_memory<T, cuda_device>;

  leaf_schedule<T> leaves_;
  int slot_count_;
  host_copy sums_, penalties_;
  step_sums<Program> step_sums_;         // on the GPU of the first output
  device_group<place> places_;           // after the arrays that their queues may still write to
  stage_memory memory_[2][stage_count];  // of inference, of training
  output_sums<Program, Backend> sums_of_outputs_;
  cut_batch micro_batches_;
  transfer_events<Program, Backend> transfers_;
  prepared_kernels prepared_;

  kernel_observer* observer_ = nullptr;
  std::vector<trained_group> groups_;  // empty: no layer was ever frozen at run time

 public:
  using program = Program;
  using backend = Backend;
  using device = cuda_device;
  using value_type = T;
  using options = cuda_options;
  static constexpr engine_traits traits{.freezes = true, .reads_gradients = true, .updates_at_once = true, .defers_sums = true};

  /// options.devices: one for each place. Throws strata_error if these are not as many as places, or if there is no such
  /// device.
  cuda_split_engine(const cuda_options& o, leaf_policy policy, int slots)
      : leaves_(policy, ends),
        slot_count_(slots),
        penalties_(std::size_t(trained.count)),
        micro_batches_(policy, table_type::micro_batches) {
    if (int(o.devices.size()) != places)
      throw_error({places, " ", split::place, places == 1 ? "" : "s", " of a network need as many GPUs, but there ",
                   o.devices.size() == 1 ? "is " : "are ", o.devices.size()});
    o.check();
    if (o.sums_by_nccl) throw_error("fastest{} adds gradients of several GPUs, but each layer is on one GPU here");
    for (int p = 0; p < places; ++p)
      detail::name_need_on_failure(
          [&] { places_.add(p, o.devices[std::size_t(p)], slots); },
          [&](int failed) { return ". Without batches, " + place::needs_on(failed, place::own_arenas(p, slots)); });
    places_.enable_peer_access();
    step_sums_.allocate(home());
    sums_of_outputs_.prepare(home());
  }

  void observe(kernel_observer* observer) {
    if (observer && observer->reads_gradients())
      throw_error("an observer that reads numbers of layers, such as check_numerics, needs all layers on one GPU, or on the CPU");
    observer_ = observer;
  }
  void freeze(std::span<const bool> slots) {
    const auto ranges = trained_ranges(layout, slots);
    groups_ = trained_groups(plan, layout_of<typename Program::items>, slots);
    prepared_.clear();  // other gradients are wanted
    for (place& p : places_) {
      p.set_ranges(ranges);
      p.clear(p.gradients);  // no kernel stores those of frozen parameters
    }
  }

  const cuda_device& on() const { return home().on; }
  machine::queue queue() const { return home().queue; }

  void read_parameters(std::span<T> to) const {
    for (int s = 0; s < layout.count; ++s)
      owner(s).read(owner(s).weights.data() + arenas.slots[s].offset, part(to, layout.slots[s].offset, s));
    places_.wait();
  }
  void write_parameters(std::span<const T> from) {
    for (int s = 0; s < layout.count; ++s)
      owner(s).write(part(from, layout.slots[s].offset, s), owner(s).weights.data() + arenas.slots[s].offset);
  }
  void read_slots(std::span<T> to) const {
    for (int k = 0; k < slot_count_; ++k)
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable) owner(s).read(slot(k, s), part(to, k * layout.trainable + layout.slots[s].offset, s));
    places_.wait();
  }
  void write_slots(std::span<const T> from) {
    for (int k = 0; k < slot_count_; ++k)
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable)
          owner(s).write(part(from, k * layout.trainable + layout.slots[s].offset, s), slot(k, s));
  }
  /// Writes the mean gradient to `to`, element by element, in the order of the layout.
  void read_gradient(const global_gradient<T, cuda_device>& from, std::span<T> to) const {
    using host = host_arithmetic<typename host_backend_of<Backend>::type>;
    for (const place& p : places_) {
      const auto size = std::size_t(p.stride());
      std::vector<arena<T>> copies;
      std::vector<const T*> at;
      for (int l = 0; l < from.count(); ++l) {
        copies.emplace_back(size);
        p.read(p.leaf_gradients[std::size_t(l)], copies.back().span());
        at.push_back(copies.back().data());
      }
      p.wait();
      arena<T> sum(size);
      host::sum_leaves(sum.data(), at.data(), from.count(), 0, long(size));
      for (int s = 0; s < layout.count; ++s)
        if (layout.slots[s].what.trainable && arenas.slots[s].place == p.number)
          for (long i = 0; i < padded_size(s); ++i)
            to[std::size_t(layout.slots[s].offset + i)] = from.mean().of(sum.data()[arenas.slots[s].offset + i]).value();
    }
  }

  /// Throws strata_error if a batch has fewer leaves than it has micro-batches, or if several processes divide it.
  int prepare(int batch, purpose why, int processes) {
    if (processes > 1) throw_error("layers on several GPUs: one process has the whole batch");
    if (why == purpose::training && batch > leaves_.prepared_for(why)) micro_batches_.refuse_few_leaves(batch, places);
    const batch_division most = leaves_.grow(batch, why);
    if (most.leaves == 0) return 0;
    detail::forget_on_failure(
        leaves_, [&] { allocate(most.leaves, batch, why); }, [&] { release_memory_of_batch(); },
        [&](int) { return needed(most.leaves, batch, why); });
    return most.leaves;
  }
  void share_among(int) {}

  /// Throws strata_error for a batch without samples.
  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    if (batch.count < 1) throw_error({"a batch of ", batch.count, " samples: a step needs at least one"});
    const auto share = [&] {
      prepare(batch.count, why, processes);  // does nothing unless memory has run out
      leaves_.begin(batch, rank, processes);
      sums_.outdate();
      const bool trains = why == purpose::training;
      micro_batches_.cut(leaves_);
      const int capacity = int(leaves_.first_of(1));
      for (place& p : places_) {
        p.context = {p.weights.data(), nullptr, nullptr, double(batch.count), random, p.queue};
        p.context.leaves = {0, capacity, p.stride(), long(sums_of_leaf::size)};
        p.use_batch(p.batches.fill(contents::parts_of(p.number, leaves_.batch())));
        p.bring_random_numbers();
        if (!trains) continue;
        p.context.observer = observer_, p.context.on = &p.on;
        p.context.trained = groups_.empty() ? nullptr : groups_.data();
        p.leaf_gradients.clear();
        for (int l = 0; l < leaves_.leaves(); ++l) p.leaf_gradients.push_back(p.gradients.data() + l * p.stride());
      }
      if (trains) {
        leaves_.gradient_places().grow(home().leaf_gradients.size());
        std::ranges::copy(home().leaf_gradients, leaves_.gradient_places().data());
      }
      trains ? prepare_kernels<purpose::training, true>() : prepare_kernels<inferring, false>();
    };
    detail::with_room_to_choose(leaves_, share, [&] { release_memory_of_batch(); });
    if (layout.has_regularizers()) penalties_.outdate();
  }
  int leaves() const { return leaves_.leaves(); }

  void forward(int) {}
  template <class Done>
  void forward_backward(Done&& done) {
    run<purpose::training, true>(true, {});
    for (int g = plan.group_count - 1; g >= 0; --g)
      for (int l = 0; l < leaves_.leaves() && plan.groups[g].trains; ++l) done(g);
  }
  void backward(int) {}

  double* sums(int l) {
    const auto copy = [&](std::span<double> to) {
      sums_of_outputs_.join(places_, leaves_.leaves());
      home().read(home().sums.data(), to.first(std::size_t(leaves_.leaves()) * sums_of_leaf::size));
      home().wait();
    };
    return sums_.get(copy).data() + std::size_t(l) * sums_of_leaf::size;
  }
  void set_statistics(int, std::span<const double>) {}
  /// The gradients of the place with the first output; other places have their own for the same leaves.
  leaf_gradients<T, cuda_device> gradients() const { return leaves_.template gradients<cuda_device>(); }
  std::span<const double> penalties() {
    return penalties_.get([&](std::span<double> to) {
      home().read(penalties_of_all(), to);
      home().wait();
    });
  }

  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, cuda_device>& gradient) {
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    for (place& p : places_) p.update.tell_numbers(now);
    update_places(rules, gradient, [](const place& p) { return p.update.told_numbers(); }, sums_grid{});
  }
  void update_state() {}

  /// True if train_at_once can compute the step: not if an observer has to see each kernel.
  bool updates_at_once(const optimizer_type&) const { return !observer_; }
  /// The host waits for nothing but the copy of the batch before the last.
  template <class Reduction>
  step_result<Program> train_at_once(const optimizer_type& rules, long step, double rate, Reduction reduction) {
    const auto gradient = reduction.reduce(gradients(), leaves_.batch().count);
    const update_numbers<T> now = update_numbers<T>::of(rules, step, rate);
    const std::int64_t number = step_sums_.next();
    for (place& p : places_) p.batches.numbers().update = now, p.batches.numbers().step = number;
    run<purpose::training, true>(true, {});
    sums_of_outputs_.join(places_, leaves_.leaves());
    const sums_grid sums =
        step_sums_.store({home().sums.data() + sums_of_leaf::statistics, long(sums_of_leaf::size), leaves_.leaves()},
                         layout.has_regularizers() ? penalties_of_all() : nullptr, &home().batches.numbers_on_device()->step);
    machine::launch(home().queue, sums.blocks, sums.code);
    update_places(rules, gradient, [](const place& p) { return &p.batches.numbers_on_device()->update; }, sums_grid{});
    return {*this, number};
  }
  /// Each step is several launches.
  static void launch_together(long) {}
  /// See step_result.
  metric_sums<Program> sums_of_step(long number) {
    return step_sums_.of_step(number, home(), [&](const auto& copy) {
      copy();
      home().wait();
    });
  }

  void measure() { run<inferring, false>(true, {}); }
  void predict(const output_rows<T>& out) {
    run<inferring, false>(false, out);
    places_.wait();
  }

 private:
  place& home() { return places_[contents::home]; }
  const place& home() const { return places_[contents::home]; }
  place& place_of(int stage) { return places_[table_type::place_of(stage)]; }
  static long padded_size(int s) { return detail::aligned_elements(layout.slots[s].what.extents.size()); }

  // For slot s of the layout: the place that has this parameter, and the address there.
  const place& owner(int s) const { return places_[arenas.slots[s].place]; }
  T* slot(int k, int s) const { return owner(s).slots.data() + k * owner(s).stride() + arenas.slots[s].offset; }
  template <class V>
  static std::span<V> part(std::span<V> whole, long begin, int s) {
    return whole.subspan(std::size_t(begin), std::size_t(padded_size(s)));
  }

  /// The memory that each place needs, as text.
  [[gnu::cold]] std::string needed(int leaves, int batch, purpose why) const {
    const bool trains = why == purpose::training;
    const int samples = micro_batches_.most_samples(batch);
    const auto scratch_of = [&](const auto& of) { return long(of.scratch) + long(samples) * long(of.scratch_per_sample); };
    const long scratch = trains ? scratch_of(plan) : scratch_of(plan_of<Program, Backend, inferring>);
    std::string all = detail::text_of({trains ? ". To train with batches of " : ". For batches of ", batch});
    for (const place& p : places_) {
      long activations = scratch;
      const auto add_stages = [&](const auto& stages) {
        for (int s = 0; s < stage_count; ++s)
          if (table_type::place_of(s) == p.number) activations += samples * stages.memory_of(s, trains ? table.in_flight(s) : 1);
      };
      trains ? add_stages(training_stages) : add_stages(stage_plan_of<Program, Backend, inferring>);
      auto needs = place::own_arenas(p.number, slot_count_);
      needs.push_back({trains ? leaves * p.stride() * long(sizeof(T)) : 0L, "gradients of " + detail::of_leaves(leaves)});
      needs.push_back({activations * long(sizeof(T)), "activations"});
      needs.push_back({long(p.batches.bytes(batch)), "the batch"});
      all += ", " + place::needs_on(p.on.index(), needs);
    }
    return all + "; smaller batches need less";
  }
  void allocate(int leaves, int batch, purpose why) {
    const bool trains = why == purpose::training;
    const int samples = micro_batches_.most_samples(batch);
    sums_.grow(std::size_t(leaves) * sums_of_leaf::size);
    for (place& p : places_) {
      p.batches.grow(batch);
      p.grow(p.sums, std::size_t(leaves) * sums_of_leaf::size);
      const auto scratch_of = [&](const auto& of) {
        return std::size_t(of.scratch) + std::size_t(samples) * std::size_t(of.scratch_per_sample);
      };
      p.grow(p.scratch, trains ? scratch_of(plan) : scratch_of(plan_of<Program, Backend, inferring>));
      if (trains) p.grow(p.gradients, std::size_t(leaves) * std::size_t(p.stride()));
    }
    sums_of_outputs_.grow(home(), leaves);
    const auto prepare_stages = [&](const auto& stages) {
      for (int s = 0; s < stage_count; ++s)
        memory_[trains][s].prepare(place_of(s).on, stages.own[s], stages.received[s], trains ? table.in_flight(s) : 1, samples);
    };
    trains ? prepare_stages(training_stages) : prepare_stages(stage_plan_of<Program, Backend, inferring>);
    prepared_.clear();
  }

  /// Frees the memory whose size depends on the batch.
  void release_memory_of_batch() {
    places_.wait();
    for (place& p : places_) {
      p.gradients = {}, p.sums = {}, p.scratch = {};
      p.batches.release();
    }
    for (auto& of_purpose : memory_)
      for (stage_memory& each : of_purpose) each = {};
    prepared_.clear();
  }

  /// Calls f(pass) of a stage and a micro-batch.
  template <purpose Why, bool Trains, class F>
  void with_pass(int stage, int number, F&& f) {
    place& p = place_of(stage);
    const micro_batch& m = micro_batches_[number];
    const samples<T> some = p.batch.rows(m.first, m.count, ends);
    step_context<T, cuda_device> context = p.context;
    context.leaves.count = m.leaves;
    context.prepared = prepared_.find(size_of<Trains>(m));
    const sums_of_leaf sums{Trains ? p.gradients.data() + m.leaf * p.stride() : nullptr,
                            p.sums.data() + std::size_t(m.leaf) * sums_of_leaf::size};
    f(detail::stage_pass<Program, Backend, Why>(context, memory_[Trains][stage], p.scratch.data(), sums, some, m.first, number));
  }
  template <bool Trains>
  prepared_kernels::pass_size size_of(const micro_batch& m) const {
    return {Trains ? purpose::training : purpose::inference, m.count, m.leaves, int(leaves_.first_of(1))};
  }
  template <purpose Why, bool Trains>
  void prepare_kernels() {
    if constexpr (detail::stage_pass<Program, Backend, Why>::prepares) {
      constexpr const auto& of = plan_of<Program, Backend, Why>;
      for (int i = 0; i < micro_batches_.size(); ++i) {
        const micro_batch& m = micro_batches_[i];
        if (prepared_.find(size_of<Trains>(m))) continue;
        prepared_kernels::groups groups(std::size_t(of.group_count));
        for (int g = 0; g < of.group_count; ++g)
          with_pass<Why, Trains>(stage_plan_of<Program, Backend, Why>.stage_of[g], i,
                                 [&](auto&& pass) { groups[std::size_t(g)] = pass.prepare(g, Trains); });
        prepared_.add(size_of<Trains>(m), std::move(groups));
      }
    }
  }

  /// Enqueues the turns of all places. is_measured: there are labels; else predictions are copied to `out`.
  template <purpose Why, bool Trains>
  void run(bool is_measured, const output_rows<T>& out) {
    sums_.outdate();
    places_.wait_for_each_other();  // a place may still read what was sent to it in the step before
    if (is_measured) penalize();
    transfers_.begin_step();
    for (place& p : places_) p.batches.send();
    position at[places];
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int p = 0; p < places; ++p) goes_on = advance<Why, Trains>(p, at[p], is_measured, out) || goes_on;
    }
    for (int p = 0; p < places; ++p)
      if (at[p].next_turn != table_type::turns_of_place)
        throw_error(
            {split::place, " ", p, " of ", places, " waits for something that no other one sends: its step is not complete"});
  }
  struct position {
    int next_turn = 0;
    std::size_t next_step = 0;
  };
  /// Enqueues the next steps of a place, up to one that needs what another place has not enqueued. Returns whether it did any.
  template <purpose Why, bool Trains>
  bool advance(int number, position& at, bool is_measured, const output_rows<T>& out) {
    bool did_any = false;
    for (; at.next_turn < table_type::turns_of_place; ++at.next_turn, at.next_step = 0) {
      const turn& now = table.turns[std::size_t(number)][std::size_t(at.next_turn)];
      if ((now.backward && !Trains) || now.micro_batch >= micro_batches_.size()) continue;
      const auto steps = stage_steps_of<Program, Backend, Why>.of(now.backward, now.stage);
      for (; at.next_step < steps.size(); ++at.next_step, did_any = true)
        if (!enqueue<Why, Trains>(now, steps[at.next_step], is_measured, out)) return did_any;
      if (now.backward == Trains) transfers_.release(now.stage, now.micro_batch, place_of(now.stage).queue);
    }
    return did_any;
  }
  template <bool Trains>
  static constexpr int in_flight(int stage) {
    return Trains ? table.in_flight(stage) : 1;
  }
  template <purpose Why, bool Trains>
  bool enqueue(const turn& now, const detail::stage_step& step, bool is_measured, const output_rows<T>& out) {
    const int number = now.micro_batch;
    if (step.computes()) {
      with_pass<Why, Trains>(now.stage, number, [&](auto&& pass) {
        if constexpr (Trains)
          pass.compute(step, false);
        else
          pass.infer(step, is_measured);
        if (!Trains && !is_measured) copy_predictions<Why>(step.which, number, pass, out);
      });
      return true;
    }
    const stage_transfer& it = stage_plan_of<Program, Backend, Why>.transfers[step.which];
    place &from = place_of(it.from), &to = place_of(it.to);
    const bool between_places = from.number != to.number;
    if (step.does == detail::stage_action::wait) return transfers_.receive(step.which, number, to.queue, between_places);
    const int first_in_flight = number - in_flight<Trains>(it.to);  // the receiving stage has to be done with those before
    if (!transfers_.wait_for_release(it.to, first_in_flight, from.queue, between_places)) return false;
    const bool is_needed = !it.of_gradient || groups_.empty() || groups_[std::size_t(it.group)].trains;
    if (is_needed)
      machine::copy_between(from.queue, memory_[Trains][it.to].at(it.target, number),
                            memory_[Trains][it.from].at(it.source, number),
                            std::size_t(micro_batches_[number].count) * std::size_t(it.size) * sizeof(T));
    transfers_.sent(step.which, number, from.queue, between_places);
    return true;
  }
  template <purpose Why>
  void copy_predictions(int g, int number, const auto& pass, const output_rows<T>& out) {
    const micro_batch& m = micro_batches_[number];
    for (int k = 0; k < plan.output_count; ++k) {
      if (plan_of<Program, Backend, Why>.output_group[k] != g || !out.at[k]) continue;
      places_[contents::place_of_output(k)].read(
          pass.predictions(k), {out.at[k] + long{m.first} * ends.outputs[k], std::size_t(m.count * ends.outputs[k])});
    }
  }

  void penalize() {
    if constexpr (layout.has_regularizers())
      for (place& p : places_) p.update.penalize(p.weights.data());
  }
  /// The penalties of all parameters, on the GPU with the first output.
  const double* penalties_of_all() const {
    places_.wait_for_each_other();
    return home().numbers_of_all.collect(home().queue, places_, [](const place& p) { return p.update.penalties(); });
  }

  /// Each place updates its parameters. Norms of the whole gradient are those of the parameters of all places.
  template <class Now>
  void update_places(const optimizer_type& rules, const global_gradient<T, cuda_device>& gradient, Now&& now,
                     const sums_grid& also) {
    for (place& p : places_) p.update.tell_arrays(p.leaf_gradients);
    const bool takes_global_norm = rules.global_clipnorm > 0;
    if (takes_global_norm) {
      for (place& p : places_) p.update.take_norms(rules, now(p), gradient.at(p.leaf_gradients.data()), p.weights.data());
      places_.wait_for_each_other();
    }
    for (place& p : places_) {
      const double* norms = nullptr;
      if (takes_global_norm)
        norms = p.numbers_of_all.collect(p.queue, places_, [](const place& of) { return of.update.norms(); });
      p.update.run(rules, now(p), gradient.at(p.leaf_gradients.data()), p.weights.data(), p.slots.data(), p.stride(), also,
                   {norms, trained.count});
    }
  }
};

template <class Split>
struct engine_options<split_backend<cuda, Split>> {
  using type = cuda_options;
};
template <class Program, class Split>
struct engine_for<Program, split_backend<cuda, Split>> {
  using type = cuda_split_engine<Program, split_backend<cuda, Split>>;
};

}  // namespace strata::core
