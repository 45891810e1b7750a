// A process's slices of the state of a training that zero divides, and the exchange of slices with other processes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/empty.hpp>
#include <strata/base/error.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/exchange/zero/parameter_windows.hpp>
#include <strata/exchange/zero/process_slices.hpp>
#include <strata/exchange/zero/whole_slots.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/refused_divisions.hpp>
#include <type_traits>
#include <vector>

namespace strata::detail {

/// Beside an engine that keeps slices, which has the elements. Its members are those of whole_state, and more.
template <class Engine, communicator C, class Sharding>
class sliced_state {
  using T = typename Engine::value_type;
  using optimizer_type = typename Engine::program::optimizer;
  static constexpr const auto& layout = layout_of_program<typename Engine::program>;
  static constexpr const auto& plan = plan_of<typename Engine::program, typename Engine::backend>;
  static constexpr auto trained = trained_ranges(layout);
  /// True if the parameters are divided, too, and fetched segment by segment: zero<3>.
  static constexpr bool fetches_parameters = plan.is_cut && Sharding::stage == 3;

  process_slices<T, C> slices_;
  collected_slots<T> whole_slots_;
  [[no_unique_address]] std::conditional_t<fetches_parameters, parameter_windows<T, C>, empty> windows_;
  bool is_torn_ = false;  // the others do not have the last update of this process

 public:
  sliced_state() = default;
  sliced_state(C& c, Engine& engine, const std::vector<gradient_bucket>& buckets, const optimizer_type& rules)
      : slices_(c, buckets, trained.span(), takes_norms(rules)), whole_slots_(layout.trainable, rules.slots()) {
    engine.keep_slices(slices_.own(c), rules.slots());
  }

  /// The elements of all slices of a process, at most.
  static constexpr long own_elements(int processes) {
    if (!plan.is_cut) return largest_slice(layout.trainable, processes);
    long own = 0;
    for (int k = 0; k < plan.segment_count; ++k)
      own += largest_slice(plan.begin_of_segment[k + 1] - plan.begin_of_segment[k], processes);
    return own;
  }
  /// Adds what an object allocates, and its engine for slots. With zero<3> the engine has all parameters between epochs only.
  static constexpr void add_memory(process_memory& to, const sizes_of_process& how) {
    constexpr long bytes = long(sizeof(T));
    const long own = own_elements(how.processes);
    to.slots += how.slots * own * bytes;
    to.whole_slots += how.slots * layout.trainable * bytes;
    if (how.processes > 1)
      process_slices<T, C>::add_memory(to, how.processes,
                                       plan.is_cut ? largest_slice(plan.largest_segment(), how.processes) : own);
    if (!fetches_parameters) return;
    to.parameters += (parameter_windows<T, C>::elements(own, plan.largest_segment()) - layout.trainable) * bytes;
    to.whole_parameters += layout.size * bytes;
  }

  void prepare_messages(C& c) {
    if constexpr (fetches_parameters)
      windows_.prepare(c, slices_.own(c), std::span(plan.begin_of_segment).first(std::size_t(plan.segment_count)),
                       plan.largest_segment());
  }

  std::span<T> whole_slots() { return whole_slots_.of_all(); }
  void collect_slots(C& c, Engine& engine, bool in_all) {
    whole_slots_.collect(c, slices_, std::span<const T>(engine.slots()), in_all);
  }
  void clear_slots(Engine& engine) {
    whole_slots_.forget();
    std::ranges::fill(engine.slots(), T(0));
  }
  /// Writes changes of whole_slots() back to this process's slots.
  void keep_slots(const C& c, Engine& engine) { whole_slots_.keep(slices_.own(c), engine.slots()); }

  void divide_parameters(Engine& engine) {
    if constexpr (fetches_parameters)
      if (!engine.are_parameters_divided()) engine.divide_parameters(windows_.segments(), windows_.own());
  }
  /// A collective call between two steps. Returns true if the engine has received parameters.
  bool collect_parameters(C& c, Engine& engine) {
    if constexpr (fetches_parameters) {
      if (!engine.are_parameters_divided()) return false;
      is_torn_ = true;
      slices_.share(c, "parameters", engine.unite_parameters(), [&](const arena_slice& s) { return windows_.own() + s.at; });
      is_torn_ = false;
      return true;
    }
    return false;
  }
  void refuse_parts_of_parameters(const Engine& engine) const {
    if constexpr (fetches_parameters)
      if (engine.are_parameters_divided()) refuse_divided_parameters("zero<3>");
    if (is_torn_)
      throw_error(
          "zero: a process was lost while the others sent each other the parameters of a step, so this process has those of "
          "two steps: continue from a snapshot, with backup_and_restore");
  }

  void update(C& c, Engine& engine, const optimizer_type& rules, long step, double rate,
              const global_gradient<T, typename Engine::device>& gradient) {
    whole_slots_.forget();
    is_torn_ = true;
    engine.update_slices(rules, step, rate, gradient,
                         [&](double* numbers, int arrays) { slices_.share_norms(c, numbers, arrays); });
    if constexpr (!fetches_parameters) {
      T* const weights = engine.parameters().data();
      slices_.share(c, "parameters", weights, [&](const arena_slice& s) { return weights + s.begin; });
    }
    is_torn_ = false;
  }

  /// Begins to fetch the parameters of a segment.
  void fetch(C& c, int segment) {
    if constexpr (fetches_parameters) windows_.fetch(c, slices_, segment);
  }
  void await(C& c, Engine& engine, int segment) {
    await_again(c, segment);
    if constexpr (fetches_parameters) engine.arrived(segment);
  }
  /// Waits for a segment that the engine had before.
  void await_again(C& c, int segment) {
    if constexpr (fetches_parameters) windows_.wait(c, segment);
  }
};

}  // namespace strata::detail
