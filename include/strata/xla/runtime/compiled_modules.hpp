// The compiled modules of a program: one for each kind of call, size of batch and set of options.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <strata/concepts/process_group.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/executable_cache.hpp>
#include <strata/xla/runtime/choose_devices.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/state_places.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// The source of a program's modules: the emitter or, in tests, the test itself.
///   `training(optimizer, options)`, `evaluation(options)`, `prediction(options)`   return a stablehlo::module_text
///   `step_scalars(optimizer, step, rate)`   a std::vector<T>: the argument step_scalars of a step
template <class M, class Program>
concept module_source = requires(const typename Program::optimizer& optimizer, const stablehlo::module_options& options) {
  { M::training(optimizer, options) } -> std::same_as<stablehlo::module_text>;
  { M::evaluation(options) } -> std::same_as<stablehlo::module_text>;
  { M::prediction(options) } -> std::same_as<stablehlo::module_text>;
  { M::step_scalars(optimizer, 0L, 0.1) } -> std::same_as<std::vector<typename Program::value_type>>;
};
}  // namespace core

namespace detail {

enum class module_kind { training, evaluation, prediction };

/// A module is compiled when a call first needs it. The process group announces to the others that they may have to wait.
template <class Program, class Modules, class Group>
class compiled_modules {
  static_assert(module_source<Modules, Program>);
  using kind = module_kind;
  using optimizer = typename Program::optimizer;
  using places = state_places<Program>;
  static constexpr bool among_processes = !std::same_as<Group, solo_group>;
  struct compiled {
    kind what;
    stablehlo::module_options options;
    std::unique_ptr<running_module> module;
  };

  const optimizer& optimizer_;
  const module_devices& on_;
  const Group& group_;
  int own_replicas_;
  pjrt::executable_cache cache_;
  std::vector<compiled> all_;
  std::vector<int> rows_[3];  // of replicas, that have been prepared: for each kind
  std::string frozen_;        // see module_options
  bool keeps_gradient_ = false;
  std::vector<stablehlo::tensor_type> slot_types_;

 public:
  /// The arguments must outlive this object. own_replicas: the replicas of this process.
  compiled_modules(const optimizer& o, const module_devices& on, const Group& group, int own_replicas)
      : optimizer_(o), on_(on), group_(group), own_replicas_(own_replicas), cache_(on.cache) {}

  /// Adds the gradient to the results of later training modules, or removes it.
  void keep_gradient(bool keep) { keeps_gradient_ = keep; }
  /// For each slot of the layout: true if it is frozen from now on.
  void freeze(std::span<const bool> slots) {
    frozen_.clear();
    for (const bool is_frozen : slots) frozen_ += is_frozen ? '1' : '0';
    if (frozen_.find('1') == frozen_.npos) frozen_.clear();
  }
  bool has_frozen() const { return !frozen_.empty(); }

  /// Later batches of at most this size can use its modules. That of training is compiled now, if it is new.
  void prepare(int batch, purpose why) {
    if (why == purpose::training) {
      module(kind::training, prepare_rows(kind::training, batch), batch, false);
    } else {
      prepare_rows(kind::evaluation, batch);
      prepare_rows(kind::prediction, batch);
    }
  }
  /// The module for a batch of this size: of the smallest size that was prepared and is large enough.
  running_module& module_for(kind what, int batch, bool has_weights) {
    std::vector<int>& known = rows_[int(what)];
    const int least = rows_of(what, batch);
    if (known.empty() || known.back() < least) prepare_rows(what, batch);
    // Among processes, the rows of each process depend on the size of the batch only: see own_rows of the executor.
    const int rows = among_processes ? least : *std::lower_bound(known.begin(), known.end(), least);
    return module(what, rows, batch, has_weights);
  }
  /// A training module that is like `one`, but computes `steps` steps in a call.
  running_module& loop_of(const running_module& one, int steps) {
    const auto at = std::ranges::find_if(all_, [&](const compiled& m) { return m.module.get() == &one; });
    stablehlo::module_options options = at->options;
    options.steps = steps;
    return find_or_compile(kind::training, options);
  }

  /// The types of all optimizer slots, also frozen ones, as state_places orders them. Empty before the first training module.
  std::span<const stablehlo::tensor_type> slot_types() const { return slot_types_; }

 private:
  /// The replicas of a module; for predictions those of this process, because each process predicts by itself.
  int replicas_of(kind what) const { return what == kind::prediction ? own_replicas_ : on_.replicas; }
  int rows_of(kind what, int count) const { return stablehlo::rows_of_replica(count, replicas_of(what)); }
  /// In an evaluation, the penalties of frozen parameters are omitted.
  static bool needs_frozen(kind what) {
    return what == kind::training || (what == kind::evaluation && layout_of_program<Program>.has_regularizers());
  }
  int prepare_rows(kind what, int count) {
    const int rows = rows_of(what, count);
    std::vector<int>& known = rows_[int(what)];
    if (const auto at = std::lower_bound(known.begin(), known.end(), rows); at == known.end() || *at != rows)
      known.insert(at, rows);
    return rows;
  }
  running_module& module(kind what, int rows, int count, bool has_weights) {
    const bool predicts = what == kind::prediction;
    return find_or_compile(what, {.rows = rows,
                                  .replicas = replicas_of(what),
                                  .is_padded = !predicts && count < std::int64_t{rows} * on_.replicas,
                                  .has_weights = !predicts && has_weights,
                                  .keeps_gradient = what == kind::training && keeps_gradient_,
                                  .frozen = needs_frozen(what) ? frozen_ : std::string(),
                                  .platform = on_.traits});
  }
  running_module& find_or_compile(kind what, const stablehlo::module_options& options) {
    for (const compiled& m : all_)
      if (m.what == what && m.options == options) return *m.module;
    return compile(what, options);
  }
  [[gnu::cold, gnu::noinline]] running_module& compile(kind what, const stablehlo::module_options& options) {
    stablehlo::module_text text = what == kind::training     ? Modules::training(optimizer_, options)
                                  : what == kind::evaluation ? Modules::evaluation(options)
                                                             : Modules::prediction(options);
    if (what == kind::training && slot_types_.empty()) learn_slot_types(text, options);
    group_.announce_work("compiles a module");
    pjrt::executable code = cache_.compile(*on_.client, text);
    group_.announce_work("");
    all_.push_back({what, options,
                    std::make_unique<running_module>(on_.client, std::move(code), std::move(text), options.rows, places::of)});
    return *all_.back().module;
  }
  /// Reads the slot types from a training module's arguments. Frozen parameters lack slots, so another text may be needed.
  void learn_slot_types(const stablehlo::module_text& text, const stablehlo::module_options& options) {
    slot_types_.resize(places::of_arena * std::size_t(optimizer_.slots()));
    stablehlo::module_options all = options;
    all.frozen.clear();
    const auto arguments = options.frozen.empty() ? text.arguments : Modules::training(optimizer_, all).arguments;
    for (const stablehlo::argument& a : arguments)
      if (a.what == stablehlo::role::slot) slot_types_[places::of(a) - places::of_arena] = a.type;
  }
};

}  // namespace detail
}  // namespace strata
