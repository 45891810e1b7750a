// The state of a running fit that callbacks read, and the members that they may change.
#pragma once
#include <optional>
#include <strata/base/standard_function.hpp>
#include <strata/state/logs.hpp>
#include <string>

namespace strata {

struct training_state {
  int epoch = 0;   // from 0
  int epochs = 0;  // the argument epochs(n) of fit
  long step = 0;   // updates so far, over all epochs; with an asynchronous parameter server those of all workers
  /// on_batch_end: updates since the last call: 1, or those of an execution (steps_per_execution).
  long batches = 1;
  /// on_epoch_end: loss and metrics over the epoch, val_ ones too. on_batch_end: empty, see `loss`.
  logs values{};
  /// From on_train_begin on: the names that `values` will have at the end of an epoch with a validation; each value is 0. In
  /// on_train_begin, of the values that callbacks add it has only those of the callbacks before this one. Empty if the hooks are
  /// called outside fit.
  logs expected{};
  /// on_epoch_end: `values` has no val_ values, because validation_freq skips this epoch.
  bool skips_validation = false;
  /// Loss of the last batch.
  double loss = 0;
  /// on_batch_end: names sample n of the last batch by its place in the data, "sample 1234". Empty if the hooks are called
  /// without a fit.
  std::function<std::string(int n)> name_of_sample{};
  /// The rate of the last update (on_batch_end, on_epoch_end), or of the next one (on_train_begin, on_epoch_begin).
  double learning_rate = 0;

  /// Set it to end the training after this epoch.
  bool stop_training = false;
  /// The fit continues an earlier one, whose state was restored before on_train_begin.
  bool resumed = false;
  /// Set it in on_train_begin: a loss that is nan or infinite ends the training after that step, instead of being an error.
  bool bad_loss_ends_training = false;
  /// Set if this process requests an interruption: all processes that train together then end after the same step.
  bool asked_to_stop = false;
  /// Set by a session_callback: fit returns after this step, also in the middle of an epoch, to be resumed later.
  bool interrupted = false;
  /// Set it to continue with this learning rate after the epoch or, in on_epoch_begin, at once.
  std::optional<double> new_learning_rate{};

  /// The rate with which the training continues: another callback may have set a new one.
  double next_learning_rate() const { return new_learning_rate.value_or(learning_rate); }

  /// on_batch_end: whether the number of updates has reached another multiple of `every` since the last call.
  bool reaches_multiple_of(long every) const { return step / every != (step - batches) / every; }
};

}  // namespace strata
