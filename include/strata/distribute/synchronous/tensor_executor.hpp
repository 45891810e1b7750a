// The executor of ranks that divide the layers of a network. Each has an executor of its own part.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <strata/distribute/communicators/in_process.hpp>
#include <strata/distribute/communicators/subgroup.hpp>
#include <strata/distribute/synchronous/among_processes.hpp>
#include <strata/distribute/synchronous/exchange_over.hpp>
#include <strata/distribute/synchronous/process_group_over.hpp>
#include <strata/distribute/synchronous/refused_divisions.hpp>
#include <strata/distribute/synchronous/stage_executor.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/network/shard_places.hpp>
#include <strata/program/kernel_list.hpp>
#include <strata/program/program_text.hpp>
#include <strata/program/split_ranks.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

template <int Groups>
struct data_parallel;  // distribute/mesh.hpp

inline constexpr reason layers_are_divided_among_at_least_one_rank{"layers are divided among at least one rank"};
inline constexpr reason data_parallel_has_at_least_one_group{"data_parallel has at least one group"};
inline constexpr reason fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch{
    "a rank that has a part of the layers keeps the activations of a micro-batch: leave out fits_in, and set a smaller "
    "micro_batch"};

// The words of the sentences. None is ever defined.
template <class Loss, class Why>
struct loss_cannot_be_divided;
template <class Metric, class Why>
struct metric_cannot_be_divided;
template <class Optimizer, class Why>
struct optimizer_cannot_be_divided;
inline constexpr reason it_keeps_means_of_whole_rows_and_columns_which_no_rank_has{
    "the optimizer keeps means of whole rows and columns, which no rank has: take another one, such as adam or lamb"};
inline constexpr reason by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax{
    "by_classes, the loss is a categorical crossentropy, with from_logits if the network ends without softmax"};
inline constexpr reason by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do{
    "by_classes, a metric has measure_place, as accuracy and top_k_categorical_accuracy do"};

namespace detail {
/// Whether a loss compares classes with logits, or with a softmax of them.
template <class Loss>
inline constexpr bool is_class_crossentropy = false;
template <class... Options>
inline constexpr bool is_class_crossentropy<sparse_categorical_crossentropy<Options...>> = true;
template <class... Options>
inline constexpr bool is_class_crossentropy<categorical_crossentropy<Options...>> = true;

template <class Loss, class Network>
constexpr bool fits_divided_classes() {
  constexpr const auto& t = tape_of<typename Network::items>;
  if constexpr (is_class_crossentropy<Loss>)
    return Loss::settings.from_logits == (t.nodes[t.size - 1].operation != &info_of<softmax>);
  else
    return false;
}
/// The first metric that needs all predictions of a sample; void: there is none.
template <class Metrics>
struct metric_of_all_classes {
  using type = void;
};
template <class First, class... Rest>
struct metric_of_all_classes<type_list<First, Rest...>>
    : std::conditional_t<measures_places<First>, metric_of_all_classes<type_list<Rest...>>, std::type_identity<First>> {};

/// no_complaint, or why ranks that have a part of the classes each cannot compute the loss or a metric.
template <class Program, class Map, int Ranks>
struct classes_verdict {
  static auto sentence() {
    using network = typename Program::network;
    using unfit = typename metric_of_all_classes<typename Program::metrics>::type;
    if constexpr (classes_of_rank_in<typename network_of_rank<network, Map, Ranks>::items> == 0)
      return std::type_identity<no_complaint>{};
    else if constexpr (!fits_divided_classes<typename Program::loss, network>())
      return std::type_identity<loss_cannot_be_divided<
          typename Program::loss,
          because<by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax>>>{};
    else if constexpr (!std::is_void_v<unfit>)
      return std::type_identity<metric_cannot_be_divided<
          unfit, because<by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

/// no_complaint, or why a program cannot be divided.
template <class Program, class Map, int Ranks, int Groups, class Backend>
struct tensor_verdict {
  static auto sentence() {
    if constexpr (Ranks < 1)
      return std::type_identity<wrong_argument<among_ranks<Ranks>, because<layers_are_divided_among_at_least_one_rank>>>{};
    else if constexpr (Groups < 1)
      return std::type_identity<wrong_argument<data_parallel<Groups>, because<data_parallel_has_at_least_one_group>>>{};
    else if constexpr (bounds_activations<Backend>)
      return std::type_identity<
          wrong_argument<Backend, because<fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch>>>{};
    else if constexpr (!std::is_same_v<typename layout_verdict<typename Program::network, Map, Ranks>::type, no_complaint>)
      return layout_verdict<typename Program::network, Map, Ranks>{};
    else if constexpr (whole_matrix_optimizer<typename Program::optimizer>)
      return std::type_identity<optimizer_cannot_be_divided<
          typename Program::optimizer, because<it_keeps_means_of_whole_rows_and_columns_which_no_rank_has>>>{};
    else
      return classes_verdict<Program, Map, Ranks>{};
  }
  using type = typename decltype(sentence())::type;
};

/// The ranks of a process.
template <communicator C>
struct one_rank_per_process {
  static constexpr bool in_one_process = false;
  using connection = std::remove_reference_t<decltype(std::declval<process_group_over<C>&>().processes())>;
  std::unique_ptr<process_group_over<C>> group_;

  auto& trained_by() { return *group_; }
  const auto& trained_by() const { return *group_; }
  int count() const { return 1; }
  connection& connection_of(int, int = 0) { return group_->processes(); }
};
struct all_ranks_in_one_process {
  static constexpr bool in_one_process = true;
  using connection = in_process;
  std::vector<std::vector<in_process>> members_;  // for each place of a pipeline all ranks
  solo_group group_;

  explicit all_ranks_in_one_process(int count, int places = 1) {
    // They wait as long as it takes: a member cannot be lost.
    for (int p = 0; p < places; ++p) members_.push_back(in_process::group(count, std::chrono::hours(24 * 365)));
  }
  auto& trained_by() { return group_; }
  const auto& trained_by() const { return group_; }
  int count() const { return int(members_.front().size()); }
  connection& connection_of(int i, int place = 0) { return members_[std::size_t(place)][std::size_t(i)]; }
};
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

/// The layers that ranks divide, and how each is divided.
template <class Program, class Map, int Ranks>
[[gnu::cold]] std::string text_of_divided_layers() {
  using items = typename network_of_rank<typename Program::network, Map, Ranks>::items;
  std::string divided;
  constexpr const auto& t = tape_of<items>;
  for (int i = 0; i < t.size; ++i)
    if (divisions_of<items>[i].shard_of)
      divided += text_of({divided.empty() ? "" : ", ", name_of_layer(t, i).view(), " ", divisions_of<items>[i].how()});
  return divided;
}
/// Throws strata::error in all processes if there are not as many of them as ranks, or if they have other programs, or divide
/// other layers. groups: how many there are now. places: how many each rank has, each in a process of its own.
template <class Program, class Map, int Ranks, int Groups, communicator C>
[[gnu::cold]] one_rank_per_process<C> agreed_ranks(C processes, const typename Program::optimizer& optimizer, std::uint64_t seed,
                                                   const compute_options& compute, int groups = Groups, int places = 1) {
  one_rank_per_process<C> all{std::make_unique<process_group_over<C>>(std::move(processes))};
  refuse_differences(*all.group_, with_program<Program>({{"number of ranks that divide layers", std::to_string(Ranks)},
                                                         {"number of groups that divide batches", std::to_string(Groups)},
                                                         {"divided layers", text_of_divided_layers<Program, Map, Ranks>()}},
                                                        optimizer, seed, compute));
  if (const int wanted = Ranks * places * groups; all.group_->size() != wanted)
    throw_error({"layers are divided among ", Ranks, Ranks == 1 ? " process" : " processes",
                 places > 1 ? text_of({" at each of ", places, " places"}) : "",
                 Groups > 1 ? text_of({" in each of ", groups, " groups"}) : "",
                 wanted > Ranks ? text_of({", which are ", wanted}) : "", ", but there are ", all.group_->size()});
  return all;
}
}  // namespace detail

/// `Groups` groups of `Ranks` ranks. The ranks of a group divide the layers of the network as Map says; groups divide batches by
/// leaves, as processes of other strategies do. Rank r of group g has number g * Ranks + r. With a Split, each rank has a thread
/// or a process for each of P places, and process (g * P + p) * Ranks + r is place p of it. A rank keeps parameters, gradients
/// and slots of its part. Where ranks are processes, a process has all parameters before the first step, after finish() and after
/// collect_slots(); else parameters() throws strata::error. All processes call prepare, train_step, evaluate_step, predict,
/// finish and collect_slots. Split: void, or how the stages of a pipeline follow each other, in which each rank computes its part
/// of the layers.
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
  static constexpr int groups = Groups;

 private:
  using executor_of_one = typename detail::executor_of_rank<program_of_one, backend, among_groups, of_stages, Groups>::type;
  static constexpr const auto& own_layout = layout_of_program<program_of_one>;
  static constexpr const auto& places = detail::shard_places<typename program_of_one::network>;
  static constexpr long elements_at_a_time = 1L << 16;
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
  /// See synchronous_executor. The update of ranks with a part of the layers would send norms of directions: an elastic training
  /// refuses optimizers that take these.
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
  /// All slots, until the next step or parameters_changed(), which keeps what was written to them. They are valid where
  /// collect_slots has come before.
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
  void parameters_changed() {
    for (const auto& each : ranks_) {
      if (is_whole_) spread(whole_.data(), each->executor.parameters().data(), each->exchange.rank(), false);
      for (std::size_t k = 0; k < slot_count() && whole_slots_.size() > 0; ++k)
        spread(whole_slots_.data() + k * std::size_t(layout.trainable),
               slots_of(each->executor).data() + k * std::size_t(own_layout.trainable), each->exchange.rank(), true);
      each->executor.parameters_changed();
    }
    whole_slots_ = {};
  }

  void announce_error(const std::string& what)
    requires requires(Places p) { p.trained_by().announce_error(what); }
  {
    group().announce_error(what);
  }
  void announce_work(const std::string& what) const
    requires requires(const Places p) { p.trained_by().announce_work(what); }
  {
    group().announce_work(what);
  }

 private:
  executor_of_one& first() { return ranks_.front()->executor; }
  const executor_of_one& first() const { return ranks_.front()->executor; }
  std::size_t slot_count() const { return std::size_t(optimizer().slots()); }
  /// Of all parameters of a rank. Those of several stages are valid after collect_slots, or until parameters_changed.
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

  /// Without this check ranks would wait for messages of another size.
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
      T* const target = i == 0 ? to : nullptr;
      const T* const own = array_of(it.executor);
      for_slots(trained, [&](const detail::shard_place& place, const parameter_slot& slot, long whole) {
        if (place.is_copy) return;
        const long size = slot.what.extents.size();
        if (!place.is_divided) {
          if (target) std::copy_n(own + slot.offset, size, target + whole);
          return;
        }
        for (long begin = 0; begin < size; begin += elements_at_a_time) {
          const long count = std::min(elements_at_a_time, size - begin);
          std::copy_n(own + slot.offset + begin, count, it.exchange.own());
          const T* const parts = it.exchange.gather(count, everyone && !Places::in_one_process);
          for (int r = 0; target && r < Ranks; ++r)
            place.for_runs(r, begin, begin + count, [&](long at, long from, long elements) {
              std::copy_n(parts + r * count + from - begin, elements, target + whole + at);
            });
        }
      });
    });
  }
  /// The part of one rank.
  void spread(const T* whole, T* own, int rank, bool trained) {
    for_slots(trained, [&](const detail::shard_place& place, const parameter_slot& slot, long begin) {
      const long size = slot.what.extents.size();
      std::fill_n(own + slot.offset, size, T{});
      place.for_runs(rank, 0, size,
                     [&](long at, long to, long count) { std::copy_n(whole + begin + at, count, own + slot.offset + to); });
    });
  }
  /// Calls f(place, own slot, offset of the whole parameter).
  template <class F>
  static void for_slots(bool trained, F&& f) {
    for (int s = 0; s < own_layout.count; ++s) {
      const parameter_slot& slot = own_layout.slots[s];
      if (trained && !slot.what.trainable) continue;
      f(places[std::size_t(s)], slot, layout.slots[places[std::size_t(s)].whole_slot].offset);
    }
  }
};

}  // namespace strata
