// The totals of the steps of an epoch, which the device of an engine adds up: meanwhile steps return no sums.
#pragma once
#include <cstddef>
#include <strata/concepts/engine.hpp>
#include <strata/program/lost_steps.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/without_totals.hpp>

namespace strata::detail {

/// Of an executor with an engine that keeps no totals.
template <class Program, class Engine, bool Keeps>
class step_totals {
 public:
  static void report() {}
  static void count_step() {}
  static void read_gradients(Engine&, bool) {}
  static void end(Engine&) {}
};

/// Of an executor with a totalling_engine.
template <class Program, class Engine>
class step_totals<Program, Engine, true> {
  bool are_kept_ = false, reads_gradients_ = false;
  long steps_ = 0, steps_before_ = 0;  // since begin(); before the last step apart of those
  long steps_per_reading_ = 1;
  lost_steps lost_;

 public:
  /// Throws what end() has left.
  void report() const { lost_.report(); }
  bool are_kept() const { return are_kept_; }
  void count_step() {
    if (are_kept_) ++steps_;
  }
  /// Whether the gradient of each step is read before the next one.
  void read_gradients(Engine& engine, bool reads) {
    reads_gradients_ = reads;
    tell(engine);
  }
  /// From the next begin() on.
  void read_every(long steps) { steps_per_reading_ = steps; }

  void begin(Engine& engine, const metric_sums<Program>& so_far) {
    engine.begin_totals(so_far);
    steps_ = steps_before_ = 0;
    are_kept_ = true;
    tell(engine);
  }
  /// Waits for the steps so far.
  totals_of_steps<Program> read(Engine& engine) {
    totals_of_steps<Program> all = engine.totals();
    if (all.first_bad_step > 0) all.first_bad_step += steps_before_;
    return all;
  }
  /// Does not throw; see report().
  void end(Engine& engine) {
    are_kept_ = false;
    lost_.keep_error_of([&] { tell(engine); });
  }
  /// sums_of_step(): of one that the engine has not computed at once.
  template <class Sums>
  void add(Engine& engine, Sums&& sums_of_step) {
    metric_sums<Program> all = engine.totals().sums;
    const metric_sums<Program> own = sums_of_step();
    for (std::size_t k = 0; k < all.size(); ++k) all[k] += own[k];
    engine.begin_totals(all);
  }
  /// Calls step(), whose sums it returns at any time. They do not belong to the totals.
  template <class Step>
  metric_sums<Program> apart(Engine& engine, Step&& step) {
    if (!are_kept_) return step();
    const totals_of_steps<Program> before = read(engine);
    metric_sums<Program> out;
    {
      const without_totals now(are_kept_, lost_, [this, &engine] { tell(engine); });
      out = step();
    }
    engine.begin_totals(before.sums);  // a GPU has added this step, too
    steps_before_ = steps_;
    return out;
  }

 private:
  void tell(Engine& engine) {
    if constexpr (several_steps_engine<Engine>) engine.read_totals_every(are_kept_ && !reads_gradients_ ? steps_per_reading_ : 1);
  }
};

}  // namespace strata::detail
