// The executor of ranks that divide the layers of a network. Each has an executor of its own part.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <strata/communicators/subgroup.hpp>
#include <strata/exchange/exchange_over.hpp>
#include <strata/exchange/gathered_arrays.hpp>
#include <strata/exchange/ranks_of_process.hpp>
#include <strata/network/shard_places.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/refused_divisions.hpp>
#include <strata/program/stages/split_ranks.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <strata/synchronous/process_split_tensor_engine.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// The executor of a rank. Group: its processes with the same rank that compute other samples; OfStages: those that compute other
/// stages, too, or void.
template <class Program, class Backend, communicator Group, class OfStages, int Groups>
struct executor_of_rank {
  using type = stage_executor<Program, Backend, OfStages, Groups>;
};
template <class Program, class Backend, communicator Group, int Groups>
struct executor_of_rank<Program, Backend, Group, void, Groups> {
  using type = synchronous_executor<Program, Backend, Group>;
};
}  // namespace detail

namespace core {
/// `Groups` groups of `Ranks` ranks. The ranks of a group divide the layers of the network as Map says; groups divide batches by
/// leaves, as processes of other strategies do. Rank r of group g has number g * Ranks + r. With a Split, each rank has a thread
/// or a process for each of P places, and process (g * P + p) * Ranks + r is its place p. A rank has the parameters, gradients
/// and slots of its part. If ranks are processes, a process has all parameters before the first step, after finish() and after
/// collect_slots(); otherwise parameters() throws strata_error. prepare, train_step, evaluate_step, predict, finish and
/// collect_slots are collective calls. Split: void, or how the stages of a pipeline follow each other, in which each rank
/// computes its part of the layers.
template <class Program, class Map, int Ranks, int Groups, class Base, class Places, class Split = void>
class tensor_executor : Places, public executor_defaults {
  using T = typename Program::value_type;
  using typename Places::connection;
  using part_of_group = subgroup<connection>;
  using among_groups = std::conditional_t<Groups == 1, detail::alone, part_of_group>;
  static constexpr const auto& layout = layout_of_program<Program>;

 public:
  using program_of_one = program_of_rank<Program, Map, Ranks>;  // what print_plan prints
  static constexpr bool has_stages_in_processes = !std::is_void_v<Split> && !Places::in_one_process;
  using of_stages = std::conditional_t<has_stages_in_processes, part_of_group, void>;
  using backend = typename detail::backend_of_rank<Base, Split, of_stages>::type;
  static constexpr executor_traits traits{.freezes = true, .collects_slots = true};

 private:
  using executor_of_one = typename detail::executor_of_rank<program_of_one, backend, among_groups, of_stages, Groups>::type;
  static constexpr const auto& own_layout = layout_of_program<program_of_one>;
  static constexpr const auto& places = detail::shard_places<typename program_of_one::network>;
  using arrays = detail::gathered_arrays<Program, program_of_one>;
  static constexpr int places_here = [] {
    if constexpr (std::is_void_v<Split> || !Places::in_one_process)
      return 1;
    else
      return Split::table.places;
  }();

  struct rank_here {
    std::vector<std::unique_ptr<exchange_over<T, part_of_group>>> exchanges;  // one for each place of a pipeline
    exchange_over<T, part_of_group>& exchange;                                // while no layer is computed
    executor_of_one executor;

    rank_here(Places& where, int i, const typename Program::optimizer& optimizer, std::uint64_t seed,
              const compute_options& compute)
        : exchanges(exchanges_of(where, i)),
          exchange(*exchanges.front()),
          executor(made(optimizer, seed, options_of(compute, exchanges), where.connection_of(i))) {}

    static auto exchanges_of(Places& where, int i) {
      std::vector<std::unique_ptr<exchange_over<T, part_of_group>>> all;
      for (int p = 0; p < places_here; ++p) {
        connection& members = where.connection_of(i, p);
        all.push_back(
            std::make_unique<exchange_over<T, part_of_group>>(part_of_group(members, members.rank() / Ranks * Ranks, 1, Ranks),
                                                              "the parts of divided layers", has_stages_in_processes));
      }
      return all;
    }
    static tensor_options<T> options_of(const compute_options& compute,
                                        const std::vector<std::unique_ptr<exchange_over<T, part_of_group>>>& exchanges) {
      tensor_options<T> all{compute};
      for (const auto& each : exchanges) all.ranks.push_back(each.get());
      return all;
    }
    static executor_of_one made(const typename Program::optimizer& optimizer, std::uint64_t seed,
                                const tensor_options<T>& options, [[maybe_unused]] connection& all) {
      [[maybe_unused]] const int of_rank = all.size() / Ranks;  // processes that compute the same part of layers
      if constexpr (has_stages_in_processes)
        return {optimizer, seed, options, part_of_group(all, all.rank() % Ranks, Ranks, of_rank), of_rank / Split::table.places};
      else if constexpr (Groups == 1)
        return {optimizer, seed, options};
      else
        return {optimizer, seed, options, part_of_group(all, all.rank() % Ranks, Ranks, of_rank, Groups)};
    }
  };
  using team = typename host_arithmetic<typename host_backend_of<Base>::type>::team;

  std::vector<std::unique_ptr<rank_here>> ranks_;
  std::unique_ptr<exchange_over<double, part_of_group>> batch_sizes_;  // of all processes, if there are several
  std::unique_ptr<team> team_;                                         // a thread for each rank of this process
  mutable arena<T> whole_;
  mutable bool is_whole_ = true;  // the parameters in whole_ are those of the ranks
  arena<T> whole_slots_;          // see collect_slots
  std::uint64_t seed_;

 public:
  tensor_executor(typename Program::optimizer optimizer, std::uint64_t seed, const compute_options& compute, Places where)
      : Places(std::move(where)), whole_(std::size_t(layout.size)), seed_(seed) {
    for (int i = 0; i < this->count(); ++i)
      ranks_.push_back(std::make_unique<rank_here>(static_cast<Places&>(*this), i, optimizer, seed, compute));
    if constexpr (!Places::in_one_process) {
      batch_sizes_ = std::make_unique<exchange_over<double, part_of_group>>(
          part_of_group(this->connection_of(0), 0, 1, this->connection_of(0).size()), "the sizes of batches");
      batch_sizes_->reserve(1);
    }
    team_ = std::make_unique<team>(this->count());
    initialize_parameters(layout, whole_.span(), seed);
    parameters_changed();
  }

  /// Adds what a process allocates that is one rank, or a place of one.
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    using engine = typename engine_for<program_of_one, backend>::type;
    constexpr long bytes = long(sizeof(T));
    executor_of_one::add_memory(to, how);
    to.messages += exchange_over<T, part_of_group>::elements(engine::most_sent(engine::most_samples_of(how)), Ranks,
                                                             has_stages_in_processes, how.shares_memory) *
                   bytes;
    to.whole_parameters += layout.size * bytes;
    if (how.place == 0) to.whole_slots += how.slots * layout.trainable * bytes;
  }

  auto& group() { return this->trained_by(); }
  const auto& group() const { return this->trained_by(); }
  double communicating() const {
    if constexpr (Places::in_one_process)
      return 0;
    else
      return group().communicating();
  }
  double waiting() const {
    if constexpr (Places::in_one_process)
      return 0;
    else
      return group().waiting();
  }

  const typename Program::optimizer& optimizer() const { return first().optimizer(); }
  long step() const { return first().step(); }
  void set_step(long step) {
    for (const auto& each : ranks_) each->executor.set_step(step);
  }
  double learning_rate() const { return first().learning_rate(); }
  void set_learning_rate(double rate) {
    for (const auto& each : ranks_) each->executor.set_learning_rate(rate);
  }
  std::optional<double> learning_rate_by_hand() const { return first().learning_rate_by_hand(); }
  std::uint64_t seed() const { return seed_; }
  static void drop_rounding_errors() {}
  void observe(kernel_observer* observer) {
    for (const auto& each : ranks_) each->executor.observe(observer);
  }
  static std::vector<listed_kernel> kernels() { return kernel_list<program_of_one, backend>(); }
  void freeze(std::span<const bool> slots) {
    bool own[own_layout.count + 1] = {};
    for (std::size_t s = 0; s < std::size_t(own_layout.count); ++s) own[s] = slots[std::size_t(places[s].whole_slot)];
    for (const auto& each : ranks_) each->executor.freeze(std::span<const bool>(own, std::size_t(own_layout.count)));
  }

  void prepare(int batch, purpose why) {
    for (const auto& each : ranks_) each->executor.prepare(batch, why);
  }
  metric_sums<Program> train_step(const samples<T>& batch) {
    refuse_other_batches(batch.count);
    is_whole_ = false;
    if constexpr (!Places::in_one_process) whole_ = {};
    whole_slots_ = {};
    const metric_sums<Program> sums = on_all([&](executor_of_one& e) { return e.train_step(batch); });
    if constexpr (!Places::in_one_process) group().exchange_votes();
    return sums;
  }
  /// See synchronous_executor. With parts of layers, an update that needs norms of directions would send messages: an elastic
  /// training refuses optimizers that need them.
  metric_sums<Program> begin_step(const samples<T>& batch) {
    refuse_other_batches(batch.count);
    is_whole_ = false;
    whole_ = {};
    whole_slots_ = {};
    return first().begin_step(batch);
  }
  void end_step() { first().end_step(); }
  void keep_reduced_gradient() { first().keep_reduced_gradient(); }
  /// Takes the place of an executor of the same part in other groups, from which nothing but its arrays is needed. is_whole: its
  /// parameters are whole.
  void take_state(tensor_executor& from, bool is_whole) {
    executor_of_one& here = first();
    if constexpr (has_stages_in_processes) {
      here.take_state(from.first(), is_whole);
    } else {
      std::ranges::copy(from.first().parameters(), here.parameters().data());
      std::ranges::copy(from.first().slots(), here.slots().data());
      here.parameters_changed();
    }
    is_whole_ = is_whole;
    whole_ = {};
    if (is_whole) {
      whole_.grow(std::size_t(layout.size));
      std::copy_n(from.whole_.data(), layout.size, whole_.data());
    }
    set_step(from.step());
  }

  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    refuse_other_batches(batch.count);
    return on_all([&](executor_of_one& e) { return e.evaluate_step(batch); });
  }
  /// The ranks of a group compute the predictions of all samples; where they are processes, all of these get them.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    refuse_other_batches(batch.count);
    each_rank([&](rank_here& it, int i) {
      if (i < Ranks) it.executor.predict(batch, i == 0 ? out : output_rows<T>{});
    });
  }
  metric_sums<Program> finish() {
    if constexpr (!Places::in_one_process) collect_parameters();
    return {};
  }

  std::span<T> parameters() {
    need_parameters();
    return whole_.span();
  }
  std::span<const T> parameters() const {
    const_cast<tensor_executor*>(this)->need_parameters();
    return whole_.span();
  }
  /// All slots, until the next step or parameters_changed(), which keeps changes to them. Valid after a call of collect_slots.
  std::span<T> whole_slots() {
    whole_slots_.grow(std::size_t(layout.trainable) * slot_count());
    return whole_slots_.span();
  }
  /// The chief gets whole_slots(), or all processes do; and all get parameters().
  void collect_slots(bool in_all = false) {
    collect_parameters();
    const bool here = in_all || group().is_chief();
    if constexpr (has_stages_in_processes) {
      first().collect_slots(in_all);  // place 0 of the first group gets those of its rank
      if (!in_all && group().rank() >= Ranks) return;
    }
    for (std::size_t k = 0; k < slot_count(); ++k)
      collect(here ? whole_slots().data() + k * std::size_t(layout.trainable) : nullptr, in_all, true,
              [&](executor_of_one& e) { return slots_of(e).data() + k * std::size_t(own_layout.trainable); });
  }
  /// Each rank sets its slots to 0, and all processes get parameters().
  void clear_slots() {
    collect_parameters();
    whole_slots_ = {};
    for (const auto& each : ranks_)
      if constexpr (has_stages_in_processes)
        each->executor.clear_slots();
      else
        std::ranges::fill(each->executor.slots(), T(0));
  }
  void parameters_changed() {
    for (const auto& each : ranks_) {
      if (is_whole_) arrays::spread(whole_.data(), each->executor.parameters().data(), each->exchange.rank(), false);
      for (std::size_t k = 0; k < slot_count() && whole_slots_.size() > 0; ++k)
        arrays::spread(whole_slots_.data() + k * std::size_t(layout.trainable),
                       slots_of(each->executor).data() + k * std::size_t(own_layout.trainable), each->exchange.rank(), true);
      each->executor.parameters_changed();
    }
    whole_slots_ = {};
  }

 private:
  executor_of_one& first() { return ranks_.front()->executor; }
  const executor_of_one& first() const { return ranks_.front()->executor; }
  std::size_t slot_count() const { return std::size_t(optimizer().slots()); }
  /// The slots of all parameters of a rank. Those of several stages are valid after collect_slots, until parameters_changed.
  static std::span<T> slots_of(executor_of_one& e) {
    if constexpr (has_stages_in_processes)
      return e.whole_slots();
    else
      return e.slots();
  }

  /// Calls f(rank, its number in this process) for each, all at the same time.
  template <class F>
  void each_rank(F&& f) {
    team_->for_tasks(int(ranks_.size()), [&](int i, int) { f(*ranks_[std::size_t(i)], i); });
  }
  template <class F>
  metric_sums<Program> on_all(F&& f) {
    metric_sums<Program> sums{};
    each_rank([&](rank_here& it, int i) {
      const metric_sums<Program> its = f(it.executor);
      if (i == 0) sums = its;
    });
    return sums;
  }

  /// Without this check, ranks would wait for messages of another size.
  void refuse_other_batches([[maybe_unused]] int count) {
    if constexpr (!Places::in_one_process) {
      batch_sizes_->own()[0] = count;
      const double* const all = batch_sizes_->gather(1, true);
      for (int r = 0; r < batch_sizes_->size(); ++r)
        if (all[r] != count) detail::refuse_other_batch(count, std::size_t(r), long(all[r]));
    }
  }

  void need_parameters() {
    if (is_whole_) return;
    if constexpr (Places::in_one_process)
      collect_parameters();
    else
      detail::refuse_divided_parameters("divided layers");
  }
  void collect_parameters() {
    if (is_whole_) return;
    if constexpr (has_stages_in_processes) first().finish();
    whole_.grow(std::size_t(layout.size));
    collect(whole_.data(), true, false, [](executor_of_one& e) { return e.parameters().data(); });
    is_whole_ = true;
  }

  /// Puts the parts of all ranks together: in all processes or, if not `everyone`, in the chief. to: null where that is not here.
  template <class Array>
  void collect(T* to, bool everyone, bool trained, Array&& array_of) {
    each_rank([&](rank_here& it, int i) {
      arrays::collect(it.exchange, array_of(it.executor), i == 0 ? to : nullptr, everyone && !Places::in_one_process, trained);
    });
  }
};
}  // namespace core

}  // namespace strata
