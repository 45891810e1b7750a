// The executor of all synchronous strategies: a global batch is cut into leaves, whoever computes them, and leaves are added
// in a fixed binary tree. So the bits of a step depend on the batch alone, not on the number of threads.
#pragma once
#include <cmath>
#include <memory>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/batch_leaves.hpp>
#include <strata/distribute/tree_reduction.hpp>
#include <strata/program/initialize.hpp>
#include <vector>

namespace strata {

template <class Program, class Backend, communicator Communicator = alone>
class synchronous_executor : compiled<Program, Backend>, batch_leaves<Program, Backend> {
  using base = batch_leaves<Program, Backend>;
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  using base::layout, base::trained, base::team_, base::training_, base::leaves_, base::now_;
  using base::inference, base::leaf_count, base::share, base::in_micro_batches, base::tree, base::tally_up;
  using typename base::nothing, typename base::sums, typename base::training_pass;
  static constexpr bool among_processes = !std::same_as<Communicator, alone>;

  optimizer_type optimizer_;
  philox seed_;
  [[no_unique_address]] Communicator processes_;
  [[no_unique_address]] std::conditional_t<among_processes, tree_reduction<T, Communicator>, nothing> reduction_;
  [[no_unique_address]] std::conditional_t<among_processes, leaf_exchange<Communicator>, nothing> exchange_, wish_exchange_;
  double wish_ = 0;
  std::vector<double> wishes_;  // of all processes, along with the last step; empty: nobody is interested
  arena<T> weights_, slots_;
  arena<double> statistics_, norms_;
  long step_ = 0;

 public:
  using backend = Backend;

  synchronous_executor(optimizer_type o, std::uint64_t seed, compute_options options = {}, Communicator processes = {})
      : base(options, processes.size()),
        optimizer_(std::move(o)),
        seed_{seed},
        processes_(std::move(processes)),
        weights_(std::size_t(layout.size)),
        slots_(std::size_t(layout.trainable) * std::size_t(optimizer_.slots())),
        statistics_(sums::statistics),
        norms_(std::size_t(weight_update<T, optimizer_type>::piece_count(trained.span()))) {
    initialize_parameters(layout, weights_.span(), seed);
  }

  std::span<T> parameters() { return weights_.span(); }
  std::span<T> slots() { return slots_.span(); }
  void parameters_changed() { this->weights_changed(); }
  optimizer_type& optimizer() { return optimizer_; }
  /// Updates so far: the counter of random numbers and schedules.
  long step() const { return step_; }
  void set_step(long step) { step_ = step; }
  int threads() const { return team_->size(); }
  bool is_chief() const { return processes_.rank() == 0; }
  std::uint64_t seed() const { return seed_.key; }

  /// All processes get the bytes of the chief. All have to call it, as they have to call `largest`.
  void broadcast([[maybe_unused]] std::span<std::byte> bytes) {
    if constexpr (among_processes) {
      if (processes_.size() == 1 || bytes.empty()) return;
      constexpr std::size_t most = std::size_t{1} << 20;
      auto memory = processes_.allocate(std::min(most, bytes.size()));
      for (; !bytes.empty(); bytes = bytes.subspan(std::min(most, bytes.size()))) {
        const std::span<std::byte> piece = bytes.first(std::min(most, bytes.size()));
        if (is_chief()) std::ranges::copy(piece, memory.data());
        for (int r = 1; r < processes_.size() && is_chief(); ++r) processes_.send(memory, 0, piece.size(), r);
        if (!is_chief()) processes_.receive(memory, 0, piece.size(), 0);
        processes_.wait("what the chief knows");
        if (!is_chief()) std::copy_n(memory.data(), piece.size(), piece.data());
      }
    }
  }
  /// Of the numbers that the processes bring.
  double largest(double mine) {
    if constexpr (among_processes) {
      std::vector<double> all(std::size_t(processes_.size()), mine);
      wish_exchange_.prepare(processes_, 1, processes_.size());
      begin_wishes(all);
      processes_.wait("an agreement");
      finish_wishes(all);
      return std::ranges::max(all);
    }
    return mine;
  }
  /// Says a number that travels with the gradients of each step from now on. All have to begin with that between the same steps.
  void wish(double mine) {
    wish_ = mine;
    if constexpr (among_processes) {
      if (!wishes_.empty()) return;
      wishes_.resize(std::size_t(processes_.size()));
      wish_exchange_.prepare(processes_, 1, processes_.size());
    }
  }
  /// The largest of those that travelled with the last step: the same in all processes.
  double wished() const {
    if constexpr (among_processes) return wishes_.empty() ? 0 : std::ranges::max(wishes_);
    return wish_;
  }

  /// The rows of a batch that this process looks at in train_step and evaluate_step; empty: all of them.
  row_choice own_rows() const {
    if constexpr (among_processes)
      return [divide = this->divide_, rank = processes_.rank(), size = processes_.size()](int count) {
        const auto [leaves, capacity] = divide(count);
        const leaf_range own = share_of(leaves, rank, size);
        return row_range{std::min(count, own.begin * capacity), std::min(count, own.end * capacity)};
      };
    return {};
  }

  /// Makes room for batches of up to so many samples.
  void prepare(int batch, purpose why) {
    [[maybe_unused]] const int leaves = this->make_room(batch, why);
    if constexpr (among_processes) {
      if (leaves == 0) return;
      exchange_.prepare(processes_, sums::size, leaves);
      if (why == purpose::training) reduction_.prepare(processes_, layout.trainable, leaves);
    }
  }

  tallies<Program> train_step(samples<T> batch) {
    const step_context<T> context = begin(training_, batch.count);
    this->penalize(weights_.data());
    if constexpr (!plan.needs_whole_leaf())
      if (updates_at_once(batch.count)) return step_at_once(context, batch);
    if constexpr (plan.needs_whole_leaf()) {
      whole_leaves(context, batch);
    } else {
      for_own_leaves([&](int l, int rank) { this->micro_batches(l, rank, context, batch); });
    }
    const double rate = optimizer_.learning_rate(step_);
    T* gradients[max_leaves] = {};
    const int count = gather_gradients(gradients);
    optimizer_.template with_rule<T>(step_, rate, [&](const auto& rule) { update(rule, gradients, count, T(1) / T(batch.count), rate); });
    if constexpr (plan.needs_whole_leaf()) update_state(context, batch);
    parameters_changed();
    ++step_;
    return tally_up();
  }

  tallies<Program> finish() { return {}; }

  tallies<Program> evaluate_step(samples<T> batch) {
    const step_context<T> context = begin(inference(), batch.count);
    this->penalize(weights_.data());
    for_own_leaves([&](int l, int rank) { this->measure_leaf(l, rank, context, batch); });
    exchange_sums("metrics");
    return tally_up();
  }

  /// Predictions of each sample, row after row. Labels are not needed.
  void predict(samples<T> batch, T* out) {
    this->predict_all(begin(inference(), batch.count), batch, out);
  }

 private:
  step_context<T> begin(auto& prepared, int count) {
    return base::begin(prepared, weights_.data(), statistics_.data(), count, seed_.fork(std::uint64_t(step_) + (1ull << 32)));
  }

  /// Those that this process computes.
  leaf_range own_leaves() const { return share_of(leaf_count(), processes_.rank(), processes_.size()); }
  template <class F>
  void for_own_leaves(F&& f) {
    const leaf_range own = own_leaves();
    team_->for_tasks(own.size(), [&](int i, int rank) { f(own.begin + i, rank); });
  }

  /// Tallies and statistics of the leaves of all processes.
  void exchange_sums([[maybe_unused]] const char* what) {
    if constexpr (among_processes) {
      const auto numbers = [&](int l) { return leaves_[std::size_t(l)].all(); };
      exchange_.begin(processes_, leaf_count(), sums::size, numbers);
      processes_.wait(what);
      exchange_.finish(processes_, leaf_count(), sums::size, numbers);
    }
  }

  void begin_wishes(std::vector<double>& all) {
    wish_exchange_.begin(processes_, processes_.size(), 1, [&](int r) { return &all[std::size_t(r)]; });
  }
  void finish_wishes(std::vector<double>& all) {
    wish_exchange_.finish(processes_, processes_.size(), 1, [&](int r) { return &all[std::size_t(r)]; });
  }

  /// What the update adds up: the gradients of all leaves, or what the processes have added up already. Tallies travel along.
  int gather_gradients(T** gradients) {
    for (int l = 0; l < leaf_count(); ++l) gradients[l] = leaves_[std::size_t(l)].gradient();
    if constexpr (among_processes) {
      const auto numbers = [&](int l) { return leaves_[std::size_t(l)].all(); };
      exchange_.begin(processes_, leaf_count(), sums::size, numbers);
      if (!wishes_.empty()) {
        wishes_[std::size_t(processes_.rank())] = wish_;
        begin_wishes(wishes_);
      }
      gradients[0] = reduction_(processes_, *team_, gradients, leaf_count(), layout.trainable);
      exchange_.finish(processes_, leaf_count(), sums::size, numbers);
      if (!wishes_.empty()) finish_wishes(wishes_);
      return 1;
    }
    return leaf_count();
  }

  /// Segment by segment: statistics of the whole batch are summed between two.
  void whole_leaves(const step_context<T>& context, const samples<T>& batch) {
    const auto for_leaves = [&](int segment, auto&& f) {
      for_own_leaves([&](int l, int rank) {
        const long start = long(l) * now_.capacity;
        in_micro_batches(training_, l, batch, segment, [&](samples<T> some, long first) {
          training_pass pass(context, training_.work_of(rank, l), leaves_[std::size_t(l)], some, first, int(first - start));
          f(pass, first > start);
        });
      });
    };
    for (int l = own_leaves().begin; l < own_leaves().end; ++l) {
      leaves_[std::size_t(l)].clear_sums();
      if (share(l, batch).count == 0) leaves_[std::size_t(l)].clear_gradient();
    }
    const int last = plan.segment_count - 1;
    for (int k = 0; k < last; ++k) {
      for_leaves(k, [&](auto& pass, bool) { pass.forward(k); });
      exchange_sums("statistics");
      sum_statistics(k + 1, 0);
    }
    for_leaves(last, [&](auto& pass, bool adds) {
      pass.forward(last);
      pass.measure();
      pass.backward(last, adds);
    });
    for (int k = last; k > 0; --k) {
      exchange_sums("statistics of the gradients");
      sum_statistics(k, 1);
      for_leaves(k - 1, [&](auto& pass, bool adds) { pass.backward(k - 1, adds); });
    }
  }

  /// Between two segments: the statistics of the group that opens the second one, added in the same tree.
  void sum_statistics(int segment, int direction) {
    const group& g = plan.groups[plan.first_of_segment[segment]];
    const int begin = g.statistics + direction * g.kernel.statistics;
    for (int i = begin; i < begin + g.kernel.statistics; ++i)
      statistics_[std::size_t(i)] = tree([&](int l) { return *leaves_[std::size_t(l)].statistics_at(i); });
  }

  void update_state(const step_context<T>& context, const samples<T>& batch) {
    for (int k = 1; k < plan.segment_count; ++k) {
      const int g = plan.first_of_segment[k];
      training_pass(context, training_.work_of(0, 0), leaves_[0], batch, 0).update_state(g, weights_.data());
    }
  }

  /// One leaf, one micro-batch: gradients need not be stored, and an optimizer may work on them while they are in the cache.
  bool updates_at_once(int count) const {
    const bool by_norm = optimizer_.clipnorm > 0 || optimizer_.global_clipnorm > 0;
    return !among_processes && leaf_count() == 1 && count <= training_.micro_batch(0) && team_->size() == 1 && !by_norm;
  }
  tallies<Program> step_at_once(const step_context<T>& context, const samples<T>& batch) {
    const flush_denormals scope;
    sums& leaf = leaves_[0];
    leaf.clear_sums();
    training_pass pass(context, training_.work_of(0, 0), leaf, batch, 0);
    pass.forward(0);
    pass.measure();
    const double rate = optimizer_.learning_rate(step_);
    optimizer_.template with_rule<T>(step_, rate, [&](const auto& rule) {
      T *gradient[1] = {}, *slots[std::remove_cvref_t<decltype(rule)>::slots + 1] = {};
      for (int k = 0; k < std::remove_cvref_t<decltype(rule)>::slots; ++k) slots[k] = slots_.data() + k * layout.trainable;
      const weight_update<T, optimizer_type> all{optimizer_, rate, T(1) / T(batch.count), trained.span(), weights_.data(), slots, gradient, 1};
      pass.backward_and_update(
          [&](long begin, long end, const T* sums) {
            gradient[0] = const_cast<T*>(sums) - begin;
            all.apply(rule, begin, end);
          },
          [&](const auto& product, long begin) { all.apply_product(rule, product, begin); });
    });
    parameters_changed();
    ++step_;
    return tally_up();
  }

  template <class Rule>
  void update(const Rule& rule, T** gradients, int count, T scale, double rate) {
    T* slots[Rule::slots + 1] = {};
    for (int k = 0; k < Rule::slots; ++k) slots[k] = slots_.data() + k * layout.trainable;
    const weight_update<T, optimizer_type> all{optimizer_, rate, scale, trained.span(), weights_.data(), slots, gradients, count, norms_.data()};
    const auto in_slices = [&](auto&& f) {
      const int slices = team_->size();
      team_->for_tasks(slices, [&](int i, int) { f(slice_begin(layout.trainable, i, slices), slice_begin(layout.trainable, i + 1, slices)); });
    };
    if (all.clips_by_norm()) in_slices([&](long begin, long end) { all.reduce(begin, end); });
    in_slices([&](long begin, long end) { all.apply(rule, begin, end); });
  }
};

}  // namespace strata
