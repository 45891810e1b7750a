// reduce_lr_on_plateau: lowers the learning rate when the validation loss stops improving.
#pragma once
#include <algorithm>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>

namespace strata {

/// `fit(source, epochs(100), validation(test), reduce_lr_on_plateau{.factor = 0.5, .patience = 3})`
/// A constant rate replaces the optimizer's schedule from the first reduction on. Its state belongs to snapshots.
/// Throws strata_error as early_stopping does.  https://keras.io/api/callbacks/reduce_lr_on_plateau
struct reduce_lr_on_plateau {
  std::string monitor = "val_loss";
  double factor = 0.1;   // below 1
  int patience = 10;     // epochs without improvement, after which the rate is reduced
  bool verbose = false;  // whether the chief prints each reduction
  monitor_mode mode = monitor_mode::automatic;
  double min_delta = 1e-4;  // a smaller change is no improvement
  int cooldown = 0;         // epochs after a reduction that do not count
  double min_lr = 0;

  /// State of a training, not a setting.
  struct seen_so_far {
    std::optional<double> best{};
    int wait = 0, cooldown = 0;
  } seen{};

  static constexpr const char *name = "reduce_lr_on_plateau", *adds = "learning_rate";

  void on_train_begin(training_state& s) {
    if (!(factor > 0 && factor < 1)) throw_error({name, ": factor is ", factor, ", but must be between 0 and 1"});
    detail::refuse_negative(name, "patience", patience);
    detail::refuse_negative(name, "cooldown", cooldown);
    detail::refuse_negative(name, "min_lr", min_lr);
    watched().check(s);
    if (!s.resumed) seen = {};
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    const detail::monitored watch = watched();
    if (watch.is_left_out(s)) return;
    const double current = watch.of(s.values), rate = s.next_learning_rate();
    s.values.set("learning_rate", rate);
    if (seen.cooldown > 0) --seen.cooldown, seen.wait = 0;
    if (watch.is_better(current, seen.best)) {
      seen.best = current;
      seen.wait = 0;
    } else if (seen.cooldown == 0 && ++seen.wait >= patience && rate > min_lr) {
      s.new_learning_rate = std::max(rate * factor, min_lr);
      seen.cooldown = cooldown, seen.wait = 0;
      if (verbose && model.group().is_chief())
        std::cout << detail::formatted("Epoch %d: reduce_lr_on_plateau reduces the learning rate to %g.\n", s.epoch + 1,
                                       *s.new_learning_rate);
    }
  }

  std::string settings() const { return watched().settings(); }
  logs state() const {
    logs out{{"wait", double(seen.wait)}, {"cooldown", double(seen.cooldown)}};
    detail::put_best(out, seen.best);
    return out;
  }
  void set_state(const logs& state) {
    seen.wait = detail::count_in(state, "wait"), seen.cooldown = detail::count_in(state, "cooldown");
    seen.best = state.find("best");
  }

 private:
  detail::monitored watched() const { return {name, monitor, mode, min_delta}; }
};
static_assert(core::stateful_callback<reduce_lr_on_plateau>);

}  // namespace strata
