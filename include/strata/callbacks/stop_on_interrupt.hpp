// stop_on_interrupt: Ctrl-C ends fit after the current step.
#pragma once
#include <csignal>
#include <memory>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/signal_watch.hpp>

namespace strata {

/// `fit(source, epochs(100), stop_on_interrupt{})`: after SIGINT, such as Ctrl-C, fit finishes the step, calls on_train_end of
/// all callbacks and returns the history so far; the model can be evaluated, saved and trained again. Processes that train
/// together all end after the same step, whichever gets the signal. A second SIGINT ends the process as it did before. With
/// backup_and_restore the training is saved as well, and goes on when the program is started again.
/// Without this callback strata handles no SIGINT: a library should do so only on request.
class stop_on_interrupt {
  using watch = detail::signal_watch<SIGINT, true>;
  std::unique_ptr<watch> watch_;
  bool interrupted_ = false;

 public:
  void on_train_begin(training_state&, fitted_model& model) {
    interrupted_ = false;
    watch_ = std::make_unique<watch>();
    model.group().vote(false);
  }
  void on_batch_end(training_state& s, fitted_model& model) { follow(s, model, model.group().vote_result()); }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (s.epoch + 1 < s.epochs) follow(s, model, model.group().any(watch_->requested()));
  }
  void on_train_end(training_state& s) {
    interrupted_ = interrupted_ || (s.interrupted && watch_->requested());  // backup_and_restore may have handled it first
    watch_->acknowledge();  // acknowledges also a signal in the last step, after which fit returns anyway
    watch_.reset();
  }

  /// Whether the last fit ended early, because this process or another one of the training got SIGINT.
  bool interrupted() const { return interrupted_; }

 private:
  void follow(training_state& s, fitted_model& model, bool result) {
    s.asked_to_stop = watch_->requested();
    model.group().vote(s.asked_to_stop);
    if (!result) return;
    watch_->acknowledge();
    interrupted_ = s.interrupted = true;  // not stop_training, which would be saved in a snapshot
  }
};
static_assert(core::callback<stop_on_interrupt>);

}  // namespace strata
