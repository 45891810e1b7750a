// The executor of processes that divide the layers of a network.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <strata/communicators/subgroup.hpp>
#include <strata/exchange/process_group_over.hpp>
#include <strata/exchange/zero/whole_slots.hpp>
#include <strata/program/refused_divisions.hpp>
#include <strata/program/stages/stage_plan.hpp>
#include <strata/synchronous/agreed_values.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <strata/synchronous/process_split_engine.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
template <communicator C>
struct holds_group {
  std::unique_ptr<process_group_over<C>> group_;
};
/// The connection of an executor to the processes that compute the same layers for other samples: k, k + P, k + 2 P, ...
template <communicator C, int Groups>
struct same_layers {
  using type = subgroup<std::remove_reference_t<decltype(std::declval<process_group_over<C>&>().processes())>>;
  static type of(process_group_over<C>& all, int places) {
    return {all.processes(), all.rank() % places, places, all.size() / places, Groups};
  }
};
template <communicator C>
struct same_layers<C, 1> {
  using type = alone;
  static alone of(process_group_over<C>&, int) { return {}; }
};
}  // namespace detail

namespace core {
/// `Groups` pipelines, which divide a batch by leaves; each has a process for each place. The engine of a process acts as if it
/// had all layers, so the step is that of one process, or that of processes that divide batches; agreements of all processes use
/// the group. In a step each process has the parameters and slots of its stages only; between two epochs it has all parameters.
/// Throws strata_error, in all processes, if their number is not that of the places of all groups, or if they have
/// different programs or stages. The number of groups at the start determines how a batch is cut into leaves; there may be fewer
/// later.
template <class Program, class Backend, communicator C, int Groups = 1>
class stage_executor : detail::holds_group<C>,
                       public synchronous_executor<Program, Backend, typename detail::same_layers<C, Groups>::type> {
  using same_layers = detail::same_layers<C, Groups>;
  using base = synchronous_executor<Program, Backend, typename same_layers::type>;
  using engine_options = typename engine_for<Program, Backend>::type::options;
  using given_options = typename engine_options::given;
  using T = typename Program::value_type;
  using detail::holds_group<C>::group_;
  collected_slots<T> whole_slots_;

 public:
  static constexpr executor_traits traits{.freezes = true, .collects_slots = true};

  /// groups: the current number of pipelines.
  stage_executor(typename Program::optimizer optimizer, std::uint64_t seed, const given_options& compute, C processes,
                 int groups = Groups)
      : detail::holds_group<C>{agreed(std::make_unique<process_group_over<C>>(std::move(processes)), optimizer, seed, compute,
                                      groups)},
        base(std::move(optimizer), seed, engine_options{compute, group_.get(), Groups},
             same_layers::of(*group_, Backend::split::table.places)),
        whole_slots_(layout_of_program<Program>.trainable, base::optimizer().slots()) {}

  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    base::add_memory(to, how);
    if (how.place == 0) to.whole_slots += how.slots * layout_of_program<Program>.trainable * long(sizeof(T));
  }

  process_group_over<C>& group() { return *group_; }
  const process_group_over<C>& group() const { return *group_; }
  double communicating() const { return group_->communicating(); }
  double waiting() const { return group_->waiting(); }

  metric_sums<Program> train_step(const samples<T>& batch) {
    whole_slots_.forget();
    const metric_sums<Program> sums = base::train_step(batch);
    group_->exchange_votes();
    return sums;
  }
  /// See synchronous_executor.
  metric_sums<Program> begin_step(const samples<T>& batch) {
    whole_slots_.forget();
    return base::begin_step(batch);
  }
  /// Takes the place of an executor of the same stages in other groups, from which nothing but its arrays is needed. is_whole:
  /// its parameters are whole.
  void take_state(stage_executor& from, bool is_whole) {
    this->engine().take_state(from.engine(), is_whole);
    this->set_step(from.step());
  }

  metric_sums<Program> finish() {
    this->engine().collect_parameters();
    return {};
  }
  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    this->engine().collect_parameters();
    return base::evaluate_step(batch);
  }
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    refuse_parts_of_parameters();
    base::predict(batch, out);
  }

  /// Throws strata_error after a step, until finish(), evaluate_step() or collect_slots() is called in all processes.
  std::span<T> parameters() {
    refuse_parts_of_parameters();
    return base::parameters();
  }
  std::span<const T> parameters() const {
    refuse_parts_of_parameters();
    return base::parameters();
  }
  void parameters_changed() {
    this->engine().keep_slots_of(whole_slots_);
    base::parameters_changed();
  }

  /// All slots, until the next step or parameters_changed(), which keeps changes to them. Valid after a call of collect_slots.
  std::span<T> whole_slots() { return whole_slots_.of_all(); }
  std::span<T> slots() = delete;
  /// All processes call it between the same two steps: the chief gets whole_slots(), or all processes do; and all get
  /// parameters().
  void collect_slots(bool in_all = false) {
    this->engine().collect_parameters();
    this->engine().collect_slots(whole_slots_, in_all);
  }
  /// All processes call it between the same two steps: each sets its slots to 0, and gets parameters().
  void clear_slots() {
    this->engine().collect_parameters();
    whole_slots_.forget();
    std::ranges::fill(this->engine().slots(), T(0));
  }
  /// Deleted because a process only has the gradients of its own stages.
  void keep_gradient(bool) = delete;

 private:
  void refuse_parts_of_parameters() const {
    if (this->engine().are_parameters_divided()) detail::refuse_divided_parameters("stages in processes");
  }
  static auto agreed(std::unique_ptr<process_group_over<C>> group, const typename Program::optimizer& optimizer,
                     std::uint64_t seed, const compute_options& compute, int groups) {
    constexpr const auto& table = Backend::split::table;
    constexpr const auto& plan = plan_of<Program, Backend>;
    constexpr const auto& stages = stage_plan_of<Program, Backend>;
    std::string cut;
    for (int g = 0; g < plan.group_count; ++g) cut += detail::text_of({g > 0 ? " " : "", stages.stage_of[g]});
    detail::refuse_differences(*group,
                               detail::with_program<Program>({{"number of places", std::to_string(table.places)},
                                                              {"number of groups that divide batches", std::to_string(Groups)},
                                                              {"stages of the kernels", cut},
                                                              {"timetable", detail::text_of_turns(table), false}},
                                                             optimizer, seed, compute));
    if (group->size() != table.places * groups)
      throw_error({"the network is cut for ", table.places, table.places == 1 ? " process" : " processes",
                   Groups > 1 ? detail::text_of({" in each of ", groups, " groups, which are ", table.places * groups}) : "",
                   ", but there are ", group->size()});
    return group;
  }
};
}  // namespace core

}  // namespace strata
