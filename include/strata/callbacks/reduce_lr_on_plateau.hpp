// reduce_lr_on_plateau: lowers the learning rate when the validation loss no longer falls.
#pragma once
#include <algorithm>
#include <iostream>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <utility>

namespace strata {

struct reduce_lr_on_plateau_options {
  std::string monitor = "val_loss";
  double factor = 0.1;   // below 1
  int patience = 10;     // epochs without improvement, after which the rate is reduced
  bool verbose = false;  // whether the chief prints each reduction
  monitor_mode mode = monitor_mode::automatic;
  double min_delta = 1e-4;  // a smaller change is no improvement
  int cooldown = 0;         // epochs after a reduction in which none is counted
  double min_lr = 0;
};

/// `fit(source, epochs(100), validation(test), reduce_lr_on_plateau{{.factor = 0.5, .patience = 3}})`
/// A constant rate replaces the optimizer's schedule from the first reduction on. Its state belongs to snapshots.
/// https://keras.io/api/callbacks/reduce_lr_on_plateau
class reduce_lr_on_plateau {
  reduce_lr_on_plateau_options options_;
  detail::monitored monitored_;
  int wait_ = 0, cooldown_ = 0;

 public:
  static constexpr const char* name = "reduce_lr_on_plateau";

  explicit reduce_lr_on_plateau(reduce_lr_on_plateau_options options = {})
      : options_(std::move(options)), monitored_(name, options_.monitor, options_.mode, options_.min_delta) {
    if (!(options_.factor > 0 && options_.factor < 1))
      throw_error({name, ": factor is ", options_.factor, ", but must be between 0 and 1"});
    detail::refuse_negative(name, "patience", options_.patience);
    detail::refuse_negative(name, "cooldown", options_.cooldown);
    detail::refuse_negative(name, "min_lr", options_.min_lr);
  }

  void on_train_begin(training_state& s) {
    if (s.resumed) return;
    monitored_.best.reset();
    wait_ = cooldown_ = 0;
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (monitored_.is_left_out(s)) return;
    const double current = monitored_.of(s.values), rate = s.next_learning_rate();
    s.values.set("learning_rate", rate);
    if (cooldown_ > 0) --cooldown_, wait_ = 0;
    if (monitored_.is_better(current, monitored_.best)) {
      monitored_.best = current;
      wait_ = 0;
    } else if (cooldown_ == 0 && ++wait_ >= options_.patience && rate > options_.min_lr) {
      s.new_learning_rate = std::max(rate * options_.factor, options_.min_lr);
      cooldown_ = options_.cooldown, wait_ = 0;
      if (options_.verbose && model.group().is_chief())
        std::cout << detail::formatted("Epoch %d: reduce_lr_on_plateau reduces the learning rate to %g.\n", s.epoch + 1,
                                       *s.new_learning_rate);
    }
  }

  std::string settings() const { return monitored_.settings(); }
  logs state() const {
    logs out{{"wait", double(wait_)}, {"cooldown", double(cooldown_)}};
    detail::put_best(out, monitored_.best);
    return out;
  }
  void set_state(const logs& state) {
    wait_ = detail::count_in(state, "wait"), cooldown_ = detail::count_in(state, "cooldown");
    monitored_.best = state.find("best");
  }
};
static_assert(stateful_callback<reduce_lr_on_plateau>);

}  // namespace strata
