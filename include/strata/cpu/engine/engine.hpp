// The engine of backends on the host: a team of threads computes the leaves of a batch, each with sums of its own.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <strata/base/empty.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/concepts/engine.hpp>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/cpu/engine/prepared_plan.hpp>
#include <strata/network/leaves.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_schedule.hpp>
#include <strata/program/trained_groups.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::core {

/// The sums of a leaf follow from its samples alone, so they have the same bits on any number of threads.
template <class Program, class Backend>
class cpu_engine {
 public:
  static constexpr engine_traits traits{.freezes = true, .keeps_slices = true, .updates_at_once = true};

 protected:
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr const auto& ends = ends_of_program<Program>;

  /// If training and inference have the same plan, they share its memory.
  static constexpr bool one_plan = !has_two_plans<Program, Backend>;
  static constexpr purpose inferring = one_plan ? purpose::training : purpose::inference;
  using training_plan = prepared_plan<Program, Backend, purpose::training>;
  using training_pass = detail::pass<Program, Backend, purpose::training>;
  using inference_pass = detail::pass<Program, Backend, inferring>;
  using leaf = leaf_sums<Program, Backend>;
  using update_type = weight_update<T, optimizer_type>;
  using use_of_predictions = detail::use_of_predictions<Program, Backend>;

  /// Elements of the memory for the gradient of a leaf.
  static constexpr long gradient_size = plan.is_cut ? plan.largest_segment() : layout.trainable;

  /// The distance between the sums of two leaves, in doubles. Threads do not share cache lines.
  static constexpr std::size_t sums_stride = (leaf::size + 7) / 8 * 8;

  compute_options options_;
  leaf_schedule<T> leaves_;
  std::unique_ptr<thread_team> team_;
  training_plan training_;
  [[no_unique_address]] std::conditional_t<one_plan, detail::empty, prepared_plan<Program, Backend, purpose::inference>>
      inference_;
  arena<T> weights_, slots_;
  arena<double> sums_;                       // of all leaves
  detail::grown_array<arena<T>> gradients_;  // of the leaves that this process computes
  arena<double> statistics_, penalties_, norms_;
  std::vector<arena_slice> slices_;  // of the arena, for which this engine has slots; empty: all of it
  // While the trained parameters are divided: those of each segment, those of slices_, and what is not trained.
  const T* const* segments_ = nullptr;
  T* own_weights_ = nullptr;
  detail::grown_array<T*> sliced_arrays_;  // see parts_of_slices
  bool has_gradient_norms_ = false;        // of this step: see take_norms_of_slices
  arena<T> state_;
  std::remove_const_t<decltype(trained)> ranges_ = trained;  // with those that are frozen
  std::vector<trained_group> groups_;                        // empty: nothing is frozen
  step_context<T, host_device> context_;                     // of the current step
  kernel_observer* observer_ = nullptr;

 public:
  using program = Program;
  using backend = Backend;
  using device = host_device;
  using value_type = T;
  using options = compute_options;

  [[gnu::cold]] cpu_engine(compute_options how, leaf_policy policy, int slots)
      : options_(how),
        leaves_(policy, ends),
        team_(std::make_unique<thread_team>(how.threads > 0 ? how.threads : available_cores())),
        weights_(std::size_t(layout.size)),
        slots_(std::size_t(layout.trainable) * std::size_t(slots)),
        statistics_(leaf::statistics),
        penalties_(std::size_t(trained.count)),
        norms_(std::size_t(update_type::norm_count(trained.span()))) {}

  /// Adds what an engine of how.processes processes allocates to train.
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    constexpr long bytes = long(sizeof(T));
    to.parameters += layout.size * bytes;
    to.slots += how.slots * layout.trainable * bytes;
    to.gradients += how.own_leaves() * gradient_size * bytes;
    add_memory_of_plans(to, how.own_leaves(), how.most.capacity, how.threads, how.micro_batch);
  }

  void observe(kernel_observer* observer) { observer_ = observer; }
  [[gnu::cold]] void freeze(std::span<const bool> slots) {
    remember_frozen(slots);
    clear_frozen_gradients(ranges_.span());
  }

  thread_team& team() const { return *team_; }
  static constexpr device on() { return {}; }
  static constexpr device::queue queue() { return {}; }

  std::span<T> parameters() { return weights_.span(); }
  std::span<T> slots() { return slots_.span(); }
  /// The address of the parameter of a slot in the arena of weights, and its offset in that of gradients.
  T* weights_of(int slot) { return weights_.data() + layout.slots[slot].offset; }
  static constexpr long offset_in_gradient(int slot) { return layout.slots[slot].offset; }
  /// The most samples that go through a layer at a time.
  int most_samples() {
    int most = 1;
    for (int k = 0; k < plan.segment_count; ++k) most = std::max(most, training_.micro_batch(k));
    for (int k = 0; k < plan_of<Program, Backend, inferring>.segment_count; ++k)
      most = std::max(most, inference().micro_batch(k));
    return most;
  }
  void parameters_changed() {
    training_.weights_changed();
    inference().weights_changed();
  }
  void read_parameters(std::span<T> to) const { std::copy_n(weights_.data(), weights_.size(), to.data()); }
  void write_parameters(std::span<const T> from) {
    std::copy_n(from.data(), from.size(), weights_.data());
    parameters_changed();
  }
  void read_slots(std::span<T> to) const { std::copy_n(slots_.data(), slots_.size(), to.data()); }
  void write_slots(std::span<const T> from) { std::copy_n(from.data(), from.size(), slots_.data()); }

  [[gnu::cold]] void keep_slices(std::vector<arena_slice> slices, int slots) {
    slices_ = std::move(slices);
    slots_ = arena<T>(std::size_t(slots) * std::size_t(elements_of(slices_)));
  }

  [[gnu::cold]] void divide_parameters(const T* const* segments, T* own) {
    for (const arena_slice& s : slices_) std::copy(weights_.data() + s.begin, weights_.data() + s.end, own + s.at);
    state_.grow(std::size_t(layout.size - layout.trainable));
    std::copy(weights_.data() + layout.trainable, weights_.data() + layout.size, state_.data());
    weights_ = {};
    segments_ = segments, own_weights_ = own;
  }
  [[gnu::cold]] T* unite_parameters() {
    weights_ = arena<T>(std::size_t(layout.size));
    std::copy_n(state_.data(), state_.size(), weights_.data() + layout.trainable);
    segments_ = nullptr, own_weights_ = nullptr;
    return weights_.data();
  }
  bool are_parameters_divided() const { return segments_ != nullptr; }
  void arrived(int segment) {
    training_.derive(*team_, untrained(), segment, segments_[segment]);
    penalize(plan.begin_of_segment[segment], plan.begin_of_segment[segment + 1], segments_[segment]);
  }

  int prepare(int batch, purpose why, int processes) {
    const batch_division most = leaves_.grow(batch, why);
    return most.leaves == 0 ? 0 : make_room(most, why, processes);
  }
  [[gnu::cold]] void share_among(int processes) {
    const batch_division most = leaves_.most_of_one(processes);
    allocate_gradients(most.leaves);
    training_.prepare(most.leaves, most.capacity, team_->size(), options_.micro_batch);
  }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    leaves_.begin(batch, rank, processes);
    context_ = {segments_ ? untrained() : weights_.data(), nullptr, statistics_.data(), double(batch.count), random};
    if (why == purpose::inference) {
      inference().derive(*team_, weights_.data());
      context_.derived = inference().derived();
      return;
    }
    if (segments_)
      context_.segments = segments_;
    else
      training_.derive(*team_, weights_.data());
    context_.derived = training_.derived();
    context_.observer = observer_;
    context_.trained = groups_.empty() ? nullptr : groups_.data();
    if constexpr (plan.needs_whole_leaf())
      for (int l = leaves_.own().begin; l < leaves_.own().end; ++l) {
        clear_sums(l);
        if (l >= leaves_.occupied()) clear_gradient(l);
      }
  }
  int leaves() const { return leaves_.leaves(); }

  void forward(int segment) {
    for_whole_leaves(segment, [&](training_pass& pass, leaf, const samples<T>&, bool) { pass.forward(segment); });
  }
  template <class Done>
  void forward_backward(Done&& done) {
    if (!segments_) penalize();
    if constexpr (plan.needs_whole_leaf()) {
      constexpr int last = plan.segment_count - 1;
      clear_segment(last);
      for_whole_leaves(last, [&](training_pass& pass, leaf to, const samples<T>& some, bool adds) {
        pass.forward(last);
        use_of_predictions::measure(pass.predictions(), some, to.metrics(), context_.ranks);
        pass.backward(last, adds);
      });
    } else {
      for_own_leaves([&](int l, int thread) { micro_batches(l, thread, done); });
    }
  }
  void backward(int segment) {
    clear_segment(segment);
    for_whole_leaves(segment, [&](training_pass& pass, leaf, const samples<T>&, bool adds) { pass.backward(segment, adds); });
  }

  double* sums(int l) { return sums_.data() + std::size_t(l) * sums_stride; }
  void set_statistics(int first, std::span<const double> values) {
    std::copy_n(values.data(), values.size(), statistics_.data() + first);
  }
  leaf_gradients<T, host_device> gradients() const { return leaves_.template gradients<host_device>(); }
  std::span<const double> penalties() const { return penalties_.span(); }

  void update(const optimizer_type& rules, long step, double rate, const global_gradient<T, host_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&](const auto& rule) { apply(rules, rule, rate, gradient); });
    parameters_changed();
  }
  template <class ShareNorms>
  void update_slices(const optimizer_type& rules, long step, double rate, const global_gradient<T, host_device>& gradient,
                     ShareNorms&& share_norms) {
    rules.template with_rule<T>(step, rate, [&](const auto& rule) { apply_in_slices(rules, rule, rate, gradient, share_norms); });
    parameters_changed();
  }
  void update_state() {
    if constexpr (plan.is_cut) return;
    for (int k = 1; k < plan.segment_count; ++k)
      training_pass(context_, training_.work_of(0), sums_of(0), leaves_.batch(), 0)
          .update_state(plan.first_of_segment[k], weights_.data());
    parameters_changed();
  }

  void measure() {
    penalize();
    for_own_leaves([&](int l, int thread) {
      clear_sums(l);
      leaves_.in_micro_batches(l, inference().micro_batch(), [&](const samples<T>& some, long first) {
        inference_pass pass(context_, inference().work_of(thread), sums_of(l), some, first);
        pass.infer();
        use_of_predictions::measure(pass.predictions(), some, sums_of(l).metrics(), context_.ranks);
      });
    });
  }
  /// Needs no labels. A null output is not written.
  void predict(const output_rows<T>& out) {
    team_->for_tasks(leaves_.occupied(), [&](int l, int thread) {
      leaves_.in_micro_batches(l, inference().micro_batch(), [&](const samples<T>& some, long first) {
        auto& work = inference().work_of(thread);
        inference_pass pass(context_, work, sums_of(l), some, first);
        pass.predict();
        for (int k = 0; k < ends.output_count; ++k)
          use_of_predictions::give(work.predictions(k), k, some.count, out.at[k] ? out.at[k] + first * ends.outputs[k] : nullptr,
                                   context_.ranks);
      });
    });
  }

  /// True for one leaf, one micro-batch and one thread: gradients need not be stored, and the update uses them while they are in
  /// the cache.
  bool updates_at_once(const optimizer_type& rules) const {
    if constexpr (plan.needs_whole_leaf() || plan.shares_parameters()) return false;
    return groups_.empty() && leaves() == 1 && leaves_.own().size() == 1 && leaves_.batch().count <= training_.micro_batch(0) &&
           team_->size() == 1 && !takes_norms(rules) && !(observer_ && observer_->reads_gradients());
  }
  template <class Reduction>
  void train_at_once(const optimizer_type& rules, long step, double rate, Reduction reduction) {
    penalize();
    const flush_denormals scope;
    clear_sums(0);
    training_pass pass(context_, training_.work_of(0), sums_of(0), leaves_.batch(), 0);
    pass.forward(0);
    use_of_predictions::measure(pass.predictions(), leaves_.batch(), sums_of(0).metrics(), context_.ranks);
    rules.template with_rule<T>(step, rate, [&]<class Rule>(const Rule& rule) {
      if constexpr (!parameterwise_rule<Rule, T> && !factored_rule<Rule, T>) {  // for those, updates_at_once is false
        slot_pointers<Rule::slots> slots(*this);
        backward_and_update(pass, {rules, rate, trained.span(), weights_.data(), slots.at}, rule, reduction);
      }
    });
    parameters_changed();
  }

 protected:
  static constexpr void add_memory_of_plans(process_memory& to, int leaves, int capacity, int threads, int micro_batch) {
    training_plan::add_memory(to, leaves, capacity, threads, micro_batch);
    if constexpr (!one_plan) prepared_plan<Program, Backend, purpose::inference>::add_memory(to, 0, 0, 0, 0);
  }

  [[gnu::cold]] void remember_frozen(std::span<const bool> slots) {
    ranges_ = trained_ranges(layout, slots);
    groups_ = std::count(slots.begin(), slots.end(), true) > 0 ? trained_groups(plan, layout_of<typename Program::items>, slots)
                                                               : std::vector<trained_group>();
  }
  [[gnu::cold]] void allocate_gradients(int leaves) { allocate_gradients(leaves, gradient_size, ranges_.span()); }
  /// elements: of the gradient of a leaf; parameters: their ranges in that gradient.
  [[gnu::cold]] void allocate_gradients(int leaves, long elements, std::span<const parameter_range> parameters) {
    gradients_.grow(std::size_t(leaves));
    leaves_.gradient_places().grow(gradients_.size());
    T** place = leaves_.gradient_places().data();
    for (arena<T>& each : gradients_) {
      if (each.grow(std::size_t(elements)) && !plan.is_cut)  // padding stays zero
        for (const parameter_range& p : parameters)
          detail::poison(each.span().subspan(std::size_t(p.begin), std::size_t(p.elements)));
      *place++ = each.data();
    }
    clear_frozen_gradients(parameters);
  }
  /// Zeroes the gradients of frozen parameters: no kernel writes them, but sums over leaves and processes read them.
  [[gnu::cold]] void clear_frozen_gradients(std::span<const parameter_range> parameters) {
    if constexpr (plan.is_cut) return;  // see clear_segment
    for (arena<T>& each : gradients_)
      for (const parameter_range& p : parameters)
        if (p.frozen) std::fill_n(each.data() + p.begin, p.elements, T{});
  }

  template <int Count>
  struct slot_pointers {
    T* at[Count + 1] = {};
    explicit slot_pointers(cpu_engine& of) {
      for (int k = 0; k < Count; ++k) at[k] = of.slots_.data() + k * layout.trainable;
    }
  };

  auto& inference() {
    if constexpr (one_plan)
      return training_;
    else
      return inference_;
  }

  /// The address at which the arena would begin if only its untrained parameters were in memory.
  const T* untrained() const { return state_.data() - layout.trainable; }

  leaf sums_of(int l) { return {leaves_.gradient_of(l), sums(l)}; }
  void clear_sums(int l) { std::fill_n(sums(l), leaf::size, 0.0); }
  void clear_gradient(int l) { std::fill_n(leaves_.gradient_of(l), gradient_size, T{}); }

  /// A factored_rule needs slices that have whole matrices.
  template <class Rule, class ShareNorms>
  void apply_to_slices(const optimizer_type& rules, const Rule& rule, double rate,
                       const global_gradient<T, host_device>& gradient, ShareNorms&& share_norms) {
    update_of_slices(rules, rate).run_parts(rule, parts_of_slices<Rule::slots>(rules, rate, gradient), share_norms);
    has_gradient_norms_ = false;
  }
  /// The first part of apply_to_slices. If it is called first, apply_to_slices itself sends no norms of gradients.
  template <class ShareNorms>
  void take_norms_of_slices(const optimizer_type& rules, const global_gradient<T, host_device>& gradient,
                            ShareNorms&& share_norms) {
    update_of_slices(rules, 0).take_gradient_norms(parts_of_slices<0>(rules, 0, gradient), share_norms);
    has_gradient_norms_ = true;
  }
  update_type update_of_slices(const optimizer_type& rules, double rate) {
    return {rules, rate, ranges_.span(), weights_.data(), nullptr, norms_.data(), 0, has_gradient_norms_};
  }
  /// in_parts of weight_update::run_parts.
  template <int Slots>
  auto parts_of_slices(const optimizer_type& rules, double rate, const global_gradient<T, host_device>& gradient) {
    const long own = elements_of(slices_);
    const auto arrays = std::size_t(gradient.count());
    sliced_arrays_.grow(slices_.size() * arrays);  // of each slice, where the arena would begin in the arrays
    for (std::size_t s = 0; s < slices_.size(); ++s)
      for (std::size_t k = 0; k < arrays; ++k)
        sliced_arrays_[s * arrays + k] = gradient.arrays()[k] + slices_[s].at - slices_[s].begin;
    return [this, &rules, rate, &gradient, own, arrays](auto&& f) {
      const int count = team_->size();
      team_->for_tasks(count, [&](int i, int) {
        T* const* sums = sliced_arrays_.data();
        for (const arena_slice& s : slices_) {
          const element_range part = slice_of({s.begin, s.end}, i, count);
          T* slots[Slots + 1] = {};
          for (int k = 0; k < Slots; ++k) slots[k] = slots_.data() + k * own + s.at - s.begin;
          T* const weights = own_weights_ ? own_weights_ + s.at - s.begin : weights_.data();
          if (part.size() > 0)
            f(update_type{rules, rate, ranges_.span(), weights, slots, norms_.data()}, gradient.at(sums), part.begin, part.end);
          sums += arrays;
        }
      });
    };
  }

  /// Computes the penalties of the regularizers. Each parameter is computed by one thread.
  void penalize() { penalize(0, layout.trainable, weights_.data()); }
  /// The same for the parameters that begin in [begin, end) of the arena. weights: the (possibly virtual) begin of the arena.
  void penalize([[maybe_unused]] long begin, [[maybe_unused]] long end, [[maybe_unused]] const T* weights) {
    if constexpr (layout.has_regularizers())
      team_->for_tasks(trained.count, [&](int k, int) {
        const parameter_range& p = ranges_.ranges[k];
        if (p.begin < begin || p.begin >= end) return;
        penalties_[std::size_t(k)] =
            update_type::penalty_of(p.frozen ? penalty{} : p.regularizer, weights, p.begin, p.begin + p.elements);
      });
  }

 private:
  [[gnu::cold]] int make_room(const batch_division& most, purpose why, int processes) {
    sums_.grow(sums_stride * std::size_t(most.leaves));
    if (why == purpose::inference) {
      inference().prepare(0, most.capacity, team_->size(), options_.micro_batch);  // needs no whole leaves
    } else {
      share_among(processes);
    }
    return most.leaves;
  }

  /// If the plan is cut, the memory of a gradient still has values of another segment. No kernel writes to padding or to frozen
  /// parameters, but sums over leaves and processes read them.
  void clear_segment(int segment) {
    if constexpr (plan.is_cut) {
      const long first = plan.begin_of_segment[segment];
      for (arena<T>& each : gradients_)
        for (const parameter_range& p : ranges_.span())
          if (first <= p.begin && p.begin < plan.begin_of_segment[segment + 1])
            std::fill(each.data() + (p.frozen ? p.begin : p.begin + p.elements) - first, each.data() + p.end - first, T{});
    }
  }

  template <class F>
  void for_own_leaves(F&& f) {
    team_->for_tasks(leaves_.own().size(), [&](int i, int thread) { f(leaves_.own().begin + i, thread); });
  }
  /// Calls f(pass, sums of the leaf, its samples, whether the micro-batch is not the first one of its leaf).
  template <class F>
  void for_whole_leaves(int segment, F&& f) {
    for_own_leaves([&](int l, int thread) {
      const long start = leaves_.first_of(l);
      leaves_.in_micro_batches(l, training_.micro_batch(segment), [&](const samples<T>& some, long first) {
        training_pass pass(context_, training_.work_of(thread, l - leaves_.own().begin), sums_of(l), some, first,
                           int(first - start));
        f(pass, sums_of(l), some, first > start);
      });
    });
  }

  /// Depth first: a micro-batch goes through the whole network and back while it stays in the cache.
  template <class Done>
  void micro_batches(int l, int thread, Done&& done) {
    const leaf to = sums_of(l);
    clear_sums(l);
    bool adds = false;
    const long end = std::min(leaves_.first_of(l + 1), long(leaves_.batch().count));
    leaves_.in_micro_batches(l, training_.micro_batch(), [&](const samples<T>& some, long first) {
      training_pass pass(context_, training_.work_of(thread), to, some, first);
      pass.forward(0);
      use_of_predictions::measure(pass.predictions(), some, to.metrics(), context_.ranks);
      const bool is_last = first + some.count == end;
      pass.backward(0, adds, [&](int g) {
        if (is_last) done(g);
      });
      adds = true;
    });
    if (adds) return;
    clear_gradient(l);
    for (int g = plan.group_count - 1; g >= 0; --g)
      if (plan.groups[g].trains) done(g);
  }

  template <class Reduction>
  void backward_and_update(training_pass& pass, const update_type& all, const detail::loops_of_rule<T>& rule,
                           Reduction reduction) {
    const auto whole = [&](T* const* array) {
      const leaf_range own = leaves_.own();
      return reduction.reduce(leaf_gradients<T, host_device>{array, 1, own.begin, own.end, leaves()}, leaves_.batch().count);
    };
    pass.backward_and_update(
        [&](long begin, long end, T* sums) {
          T* const array[1] = {sums - begin};
          all.apply(rule, whole(array), begin, end);
        },
        [&](const gradient_product<T>& product, long begin) { all.apply_product(rule, product, whole(nullptr).mean(), begin); });
    all.clear_padding(rule.slot_count, false, 0, layout.trainable);
  }

  template <class Rule>
  void apply(const optimizer_type& rules, const Rule& rule, double rate, const global_gradient<T, host_device>& gradient) {
    slot_pointers<Rule::slots> slots(*this);
    const update_type all{rules, rate, ranges_.span(), weights_.data(), slots.at, norms_.data()};
    if constexpr (parameterwise_rule<Rule, T> || factored_rule<Rule, T>)
      run(all, rule, gradient);
    else
      run(all, detail::loops_of_rule<T>(rule), gradient);
  }
  template <class Rule>
  [[gnu::noinline]] void run(const update_type& all, const Rule& rule, const global_gradient<T, host_device>& gradient) {
    all.run(rule, gradient, [&](auto&& f) { for_slices(*team_, {0, layout.trainable}, f); });
  }

  /// The slots and the gradient have the elements of slices_ only.
  template <class Rule, class ShareNorms>
  void apply_in_slices(const optimizer_type& rules, const Rule& rule, double rate,
                       const global_gradient<T, host_device>& gradient, ShareNorms& share_norms) {
    constexpr bool is_factored = factored_rule<Rule, T>;
    static_assert(
        !is_factored || traits_of_optimizer<optimizer_type>.needs_whole_matrices,
        "an optimizer with a factored_rule has `static constexpr optimizer_traits traits{.needs_whole_matrices = true}`");
    if constexpr (!is_factored) apply_to_slices(rules, rule, rate, gradient, share_norms);
  }
};

/// Every backend whose device is the host, such as cpu, unfused<cpu> and reference.
template <class Program, class Backend>
  requires(device_of<Backend>::is_host)
struct engine_for<Program, Backend> {
  using type = cpu_engine<Program, Backend>;
};

}  // namespace strata::core
