// What callbacks see of a running fit, and what they may change.
#pragma once
#include <optional>
#include <strata/train/logs.hpp>

namespace strata {

struct training_state {
  int epoch = 0;   // from 0
  int epochs = 0;  // how many fit was asked for
  long step = 0;   // updates so far, over all epochs; with an asynchronous parameter server those of all workers
  /// on_epoch_end: loss and metrics over the epoch, val_ ones too. on_batch_end: empty, see `loss`.
  logs values{};
  /// Of the last batch.
  double loss = 0;
  /// on_batch_end, on_epoch_end: of the last update. on_train_begin, on_epoch_begin: of the next one.
  double learning_rate = 0;

  /// Set it to end the training after this epoch.
  bool stop_training = false;
  /// Set by a session_callback: fit returns after this step, also in the middle of an epoch, to be resumed later.
  bool interrupted = false;
  /// Set it to continue with this learning rate after the epoch.
  std::optional<double> new_learning_rate{};
};

}  // namespace strata
