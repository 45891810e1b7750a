// The engine of a program that is split into stages, where each place is a process.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/communicators/subgroup.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/exchange/leaf_exchange.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/exchange/zero/process_slices.hpp>
#include <strata/exchange/zero/whole_slots.hpp>
#include <strata/program/place_arenas.hpp>
#include <strata/program/refused_divisions.hpp>
#include <vector>

namespace strata::core {

/// given: the compute options of the strategy.
template <communicator Communicator>
struct process_split_options : compute_options {
  using given = compute_options;
  process_group_over<Communicator>* group = nullptr;  // it outlives the engine
  int first_groups = 1;                               // pipelines at the start of the training: later there may be fewer
};

/// With P places, processes g * P to g * P + P - 1 are pipeline g. Its process p computes the stages of place p, with one thread,
/// for the leaves of group g, and updates the parameters of these stages. During a step it has only these, their slots and their
/// gradients; after collect_parameters(), and before the first step, it has all parameters. An evaluation needs all of them, so
/// its leaves are divided among all processes. All processes make the same calls. The executor of a process adds up the gradients
/// of all groups and does not depend on the number of processes in a group. compute_options::threads is the number of threads
/// that update, evaluate and predict.
template <class Program, class Backend>
class process_split_engine : public split_engine<Program, Backend> {
 public:
  static constexpr engine_traits traits{.freezes = true, .has_some_layers = true};

 protected:
  using base = split_engine<Program, Backend>;
  using cpu = cpu_engine<Program, Backend>;
  using base::context_, base::layout, base::leaves_, base::micro_batches, base::places, base::plan, base::stages, base::steps,
      base::table;
  using typename base::T, typename base::row, typename base::leaf, typename base::piece, typename base::table_type;
  using communicator = typename Backend::communicator;
  using group_type = process_group_over<communicator>;
  using memory = typename communicator::memory;
  using connections = std::remove_reference_t<decltype(std::declval<group_type&>().processes())>;
  using pipeline_type = subgroup<connections>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr auto arenas = arenas_of_places<Program, Backend>;
  static constexpr auto place_of_parameter = [] {  // of each trained parameter
    std::array<int, std::size_t(trained.count) + 1> of{};
    for (int k = 0, s = 0; s < layout.count; ++s)
      if (layout.slots[s].what.trainable) of[std::size_t(k++)] = arenas.slots[s].place;
    return of;
  }();
  // What processes send each other before a step: the number of samples, then penalties.
  static constexpr std::size_t told = 1 + (layout.has_regularizers() ? std::size_t(trained.count) : 0);

  group_type* group_;                 // all processes
  int place_, first_, first_groups_;  // of this process; the rank with which its pipeline begins; pipelines at the start
  pipeline_type pipeline_;
  // For each transfer between processes: memory for each micro-batch of a step, so that no sender waits for room.
  std::vector<memory> messages_;
  memory sums_on_the_way_{};
  std::vector<double> told_;  // by all processes
  leaf_exchange<connections> telling_, measuring_;
  process_slices<T, pipeline_type> trained_, state_;  // of the arena, whose trained parameters come first
  arena<T> own_;                                      // the arena of this place
  std::vector<parameter_range> own_ranges_;           // of its trained parameters, there
  std::vector<int> own_parameters_;                   // which they are
  bool is_divided_ = false;                           // the parameters are in own_

 public:
  using options = process_split_options<communicator>;

  process_split_engine(const options& how, leaf_policy policy, int slots)
      : base(with_threads(how), policy, 0, 1, how.group->rank() % places),
        group_(how.group),
        place_(group_->rank() % places),
        first_(group_->rank() - place_),
        first_groups_(how.first_groups),
        pipeline_(group_->processes(), first_, 1, places),
        told_(told * std::size_t(group_->size())),
        trained_(pipeline_, slices(true), trained.span(), true),
        state_(pipeline_, slices(false), {}, false) {
    telling_.prepare(group_->processes(), told, group_->size());
    detail::for_ranges_of_place(arenas, layout, trained, place_, [this](const parameter_range& range, int k) {
      own_ranges_.push_back(range);
      own_parameters_.push_back(k);
    });
    this->keep_slices(trained_.own(pipeline_), slots);
  }

  void freeze(std::span<const bool> slots) {
    this->remember_frozen(slots);
    for (std::size_t k = 0; k < own_ranges_.size(); ++k) own_ranges_[k].frozen = this->ranges_.ranges[own_parameters_[k]].frozen;
    this->clear_frozen_gradients(own_ranges_);
  }

  /// groups: the groups of processes among which leaves are divided, here and below.
  int prepare(int batch, purpose why, int groups) {
    if (why == purpose::inference) {
      const int leaves = base::prepare(batch, why, groups);
      if (leaves > 0) measuring_.prepare(group_->processes(), leaf::size, leaves);
      return leaves;
    }
    const int leaves = this->grow(batch, first_groups_);
    if (leaves > 0) share_among(groups);
    return leaves;
  }
  void share_among(int groups) {
    this->allocate_gradients(leaves_.most_of_one(groups).leaves, gradient_elements(), own_ranges_);
    this->make_room_for_stages(groups);
    make_room(groups);
  }
  /// Adds what the engine of a place allocates to train in how.processes pipelines.
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    constexpr long bytes = long(sizeof(T));
    const typename base::most_pieces pieces(how.policy, how.batch, how.processes, 1, how.micro_batch);
    to.parameters += arenas.size[how.place] * bytes;
    to.whole_parameters += layout.size * bytes;
    to.slots += how.slots * arenas.trainable[how.place] * bytes;
    to.gradients += how.own_leaves() * arenas.trainable[how.place] * bytes;
    cpu::add_memory_of_plans(to, 0, 0, 0, 0);
    to.activations += base::scratch_for(pieces.samples) * bytes;
    for (int s = 0; s < table_type::stages; ++s)
      if (table_type::place_of(s) == how.place)
        to.activations += pieces.samples * stages.memory_of(s, table.in_flight(s)) * bytes;
    for (int t = 0; t < stages.transfer_count; ++t) {
      const stage_transfer& it = stages.transfers[t];
      if (!concerns(it, how.place)) continue;
      const bool twice = how.shares_memory && table_type::place_of(it.to) == how.place;  // that of the sender counts, too
      to.messages += (twice ? 2 : 1) * pieces.count * bytes_of(it, pieces.samples);
    }
    process_slices<T, pipeline_type>::add_memory(to, places, arenas.largest_slice);
    to.messages += (3 + 2) * pieces_of(trained.span(), {0, layout.trainable}).end * long(sizeof(double));  // norms
  }

  /// Null: the parameter is at another place.
  T* weights_of(int slot) {
    if (!is_divided_) return base::weights_of(slot);
    return arenas.slots[slot].place == place_ ? own_.data() + arenas.slots[slot].offset : nullptr;
  }
  static constexpr long offset_in_gradient(int slot) { return arenas.slots[slot].offset; }
  /// The elements of the gradient of a leaf in this process.
  long gradient_elements() const { return gradient_elements(place_); }
  static constexpr long gradient_elements(int place) { return arenas.trainable[place]; }

  /// Throws strata_error if the processes do not have batches of the same size.
  void begin(purpose why, const samples<T>& batch, philox random, int group = 0, int groups = 1) {
    if (why == purpose::inference) return base::begin(why, batch, random, group * places + place_, groups * places);
    divide_parameters();
    leaves_.begin(batch, group, groups);
    this->training_.derive_if(this->team(), own_.data(), [&](int g) { return this->is_here(stages.stage_of[g]); });
    context_ = {own_.data(), this->training_.derived(), this->statistics_.data(), double(batch.count), random};
    context_.observer = this->observer_;
    context_.trained = this->groups_.empty() ? nullptr : this->groups_.data();
    this->cut();
  }

  template <class Done>
  void forward_backward(Done&&) {
    for (const arena_slice& s : this->slices_) this->penalize(s.begin, s.end, own_.data() + s.at - s.begin);
    tell_others();
    this->clear_sums_of_leaves(gradient_elements());
    {
      const flush_denormals scope;
      row& r = *this->rows_.front();
      sent_messages messages{*this, r};
      this->compute(r, place_, messages);
    }
    group_->processes().wait("the last activations and gradients");
    share_sums();
  }

  void update(const typename Program::optimizer& rules, long step, double rate, const global_gradient<T, host_device>& gradient) {
    rules.template with_rule<T>(step, rate, [&](const auto& rule) {
      this->apply_to_slices(rules, rule, rate, gradient, [&](double* numbers, int arrays) { share_norms(numbers, arrays); });
    });
    this->training_.weights_changed();
  }
  /// The first part of the update: the rest sends nothing.
  void take_gradient_norms(const typename Program::optimizer& rules, const global_gradient<T, host_device>& gradient) {
    this->take_norms_of_slices(rules, gradient, [&](double* numbers, int arrays) { share_norms(numbers, arrays); });
  }

  /// All processes call it between the same two steps: each gets all parameters, until the next step.
  void collect_parameters() {
    if (!is_divided_) return;
    this->weights_ = arena<T>(std::size_t(layout.size));
    const auto own = [&](const arena_slice& s) { return own_.data() + s.at; };
    trained_.share(pipeline_, "parameters", this->weights_.data(), own);
    state_.share(pipeline_, "parameters", this->weights_.data(), own);
    is_divided_ = false;
    this->parameters_changed();
  }
  bool are_parameters_divided() const { return is_divided_; }

  /// All processes call it between the same two steps: the chief gets the slots of all parameters, or all processes do.
  void collect_slots(collected_slots<T>& to, bool in_all) {
    if (in_all || first_ == 0) to.collect(pipeline_, trained_, std::span<const T>(this->slots()), in_all);
  }
  /// Takes the arrays of an engine of the same place in other groups. is_whole: all its parameters.
  [[gnu::cold]] void take_state(process_split_engine& from, bool is_whole) {
    if (is_whole) {
      std::copy_n(from.weights_.data(), from.weights_.size(), this->weights_.data());
    } else {
      from.divide_parameters();
      own_ = arena<T>(std::size_t(arenas.size[place_]));
      std::copy_n(from.own_.data(), arenas.size[place_], own_.data());
      this->weights_ = {};
      this->own_weights_ = own_.data();
      is_divided_ = true;
    }
    std::copy_n(from.slots_.data(), from.slots_.size(), this->slots_.data());
    this->parameters_changed();
  }
  void keep_slots_of(collected_slots<T>& all) { all.keep(this->slices_, this->slots()); }

  /// Shares the norms of the gradients of all places, for clipping. A rule needs norms of the parameters of this place only.
  void share_norms(double* numbers, int arrays) {
    if (arrays == 1) trained_.share_norms(pipeline_, numbers, arrays);
  }

  void measure() {
    base::measure();
    auto& c = group_->processes();
    measuring_.begin(c, leaves_.leaves(), leaf::size, [&](int l) { return this->sums(l); });
    c.wait("metrics");
    measuring_.finish(c, leaves_.leaves(), leaf::size, [&](int l) { return this->sums(l); });
  }

 private:
  static compute_options with_threads(const options& how) {
    compute_options all = how;
    all.threads = how.threads > 0 ? how.threads : available_cores();
    return all;
  }
  /// The slices of all places. Neighbours in the whole arena that are neighbours in the arena of a place, too, form one slice.
  static std::vector<std::vector<arena_slice>> slices(bool trainable) {
    std::vector<std::vector<arena_slice>> all(std::size_t{table_type::places});
    for (int s = 0; s < layout.count; ++s) {
      if (layout.slots[s].what.trainable != trainable) continue;
      std::vector<arena_slice>& of_place = all[std::size_t(arenas.slots[s].place)];
      const long begin = layout.slots[s].offset, end = begin + detail::aligned_elements(layout.slots[s].what.extents.size());
      if (!of_place.empty() && of_place.back().end == begin)
        of_place.back().end = end;
      else
        of_place.push_back({begin, end, arenas.slots[s].offset});
    }
    return all;
  }
  void divide_parameters() {
    if (is_divided_) return;
    own_.grow(std::size_t(arenas.size[place_]));
    for (const auto* of_kind : {&trained_, &state_})
      for (const arena_slice& s : of_kind->of_all()[std::size_t(place_)])  // the processes may be in other groups already
        std::copy_n(this->weights_.data() + s.begin, s.size(), own_.data() + s.at);
    this->weights_ = {};
    this->own_weights_ = own_.data();
    is_divided_ = true;
  }
  static constexpr bool is_message(const stage_transfer& t) { return table_type::place_of(t.from) != table_type::place_of(t.to); }
  static constexpr bool concerns(const stage_transfer& t, int place) {
    return is_message(t) && (table_type::place_of(t.from) == place || table_type::place_of(t.to) == place);
  }
  static constexpr long bytes_of(const stage_transfer& t, int samples) { return long(samples) * t.size * long(sizeof(T)); }
  std::size_t bytes_of(const stage_transfer& t) const { return std::size_t(bytes_of(t, this->capacity_)); }
  /// The memory of transfer t for a micro-batch.
  T* message(int t, int micro_batch) {
    return numbers_in<T>(messages_[std::size_t(t)]) + long(micro_batch) * this->capacity_ * stages.transfers[t].size;
  }

  void make_room(int groups) {
    auto& c = group_->processes();
    messages_.clear();
    for (int t = 0; t < stages.transfer_count; ++t)
      messages_.push_back(
          c.allocate(concerns(stages.transfers[t], place_) ? std::size_t(this->room_) * bytes_of(stages.transfers[t]) : 0));
    sums_on_the_way_ = c.allocate(std::size_t(leaves_.most_of_one(groups).leaves) * leaf::size * sizeof(double));
  }

  /// Sends the batch size, which must be the same in all processes, and the penalties of this process's parameters.
  void tell_others() {
    auto& c = group_->processes();
    const int processes = group_->size();
    const auto of_process = [&](int r) { return told_.data() + told * std::size_t(r); };
    double* const mine = of_process(group_->rank());
    mine[0] = leaves_.batch().count;
    for (std::size_t k = 1; k < told; ++k) mine[k] = this->penalties_[k - 1];
    telling_.begin(c, processes, told, of_process);
    c.wait("the sizes of batches");
    telling_.finish(c, processes, told, of_process);
    for (int r = 0; r < processes; ++r)
      if (of_process(r)[0] != leaves_.batch().count)
        detail::refuse_other_batch(leaves_.batch().count, std::size_t(r), long(of_process(r)[0]));
    for (std::size_t k = 1; k < told; ++k) this->penalties_[k - 1] = of_process(first_ + place_of_parameter[k - 1])[k];
  }

  /// Messages between processes. Those of one process arrive in the order in which it sends them, which follows from its turns:
  /// before this process waits for one, it posts the receives of all that were sent earlier.
  struct sent_messages {
    process_split_engine& engine;
    row& of;
    struct {
      int round = 0, turn = 0, step = 0;
    } at[table_type::places] = {};              // in the turns of each process: what comes next
    int begun[stages.transfer_count + 1] = {};  // micro-batches

    void wait(int t, int number) {
      const stage_transfer& it = stages.transfers[t];
      if (!is_message(it)) return;
      auto& c = engine.pipeline_;
      while (begun[t] <= number) receive_next(table_type::place_of(it.from));
      c.wait_received(it.of_gradient ? "gradients of activations" : "activations", c.begun());
      const T* const from = engine.message(t, number);
      std::copy_n(from, long(of.pieces[std::size_t(number)].count) * it.size, of.memory[it.to].at(it.target, number));
    }
    void send(int t, int number, int count) {
      const stage_transfer& it = stages.transfers[t];
      if (!is_message(it)) return base::copy(of, it, number, count);
      std::copy_n(of.memory[it.from].at(it.source, number), long(count) * it.size, engine.message(t, number));
      engine.pipeline_.send(engine.messages_[std::size_t(t)], std::size_t(number) * engine.bytes_of(it), size_of(it, number),
                            table_type::place_of(it.to));
    }
    static void release(int) {}

   private:
    std::size_t size_of(const stage_transfer& t, int number) const {
      return std::size_t(of.pieces[std::size_t(number)].count) * std::size_t(t.size) * sizeof(T);
    }
    void receive_next(int process) {
      for (auto& next = at[process];;) {
        const turn& now = table.turns[std::size_t(process)][std::size_t(next.turn)];
        const int number = next.round * micro_batches + now.micro_batch;
        const bool exists = number < int(of.pieces.size());
        const std::span<const detail::stage_step> all = steps.of(now.backward, now.stage);
        while (exists && next.step < int(all.size())) {
          const detail::stage_step& step = all[std::size_t(next.step++)];
          if (step.does != detail::stage_action::send) continue;
          const stage_transfer& it = stages.transfers[step.which];
          if (!is_message(it) || table_type::place_of(it.to) != engine.place_) continue;
          engine.pipeline_.receive(engine.messages_[std::size_t(step.which)], std::size_t(number) * engine.bytes_of(it),
                                   size_of(it, number), process);
          begun[step.which] = number + 1;
          return;
        }
        next.step = 0;
        if (++next.turn == table_type::turns_of_place) next.turn = 0, ++next.round;
      }
    }
  };

  /// The sums of the leaves of a pipeline are those of its process with the outputs.
  void share_sums() {
    constexpr int with_outputs = table_type::place_of(stages.stage_of[plan.output_group[0]]);
    double* const all = numbers_in<double>(sums_on_the_way_);
    const leaf_range own = leaves_.own();
    const auto for_leaves = [&](auto&& f) {
      for (int l = own.begin; l < own.end; ++l) f(this->sums(l), all + std::size_t(l - own.begin) * leaf::size);
    };
    if (const std::size_t bytes = std::size_t(own.size()) * leaf::size * sizeof(double); place_ != with_outputs) {
      if (bytes > 0) pipeline_.receive(sums_on_the_way_, 0, bytes, with_outputs);
    } else if (bytes > 0) {
      for_leaves([](const double* from, double* to) { std::copy_n(from, leaf::size, to); });
      for (int p = 0; p < places; ++p)
        if (p != place_) pipeline_.send(sums_on_the_way_, 0, bytes, p);
    }
    pipeline_.wait("metrics");
    if (place_ != with_outputs) for_leaves([](double* to, const double* from) { std::copy_n(from, leaf::size, to); });
  }
};

template <class Program, class Base, class Split, class Communicator>
  requires(device_of<Base>::is_host)
struct engine_for<Program, split_among<Base, Split, Communicator>> {
  using type = process_split_engine<Program, split_among<Base, Split, Communicator>>;
};

}  // namespace strata::core
