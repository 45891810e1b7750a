// The position of a fit between two steps.
#pragma once
#include <optional>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/state/logs.hpp>
#include <vector>

namespace strata::core {

/// All that determines how a fit continues, besides the weights and the optimizer's slots.
struct training_position {
  long step = 0;            // updates so far, over all epochs
  int epoch = 0;            // the current epoch or, between two epochs, the next one
  bool in_epoch = false;    // an epoch has begun
  long steps_of_epoch = 0;  // so far
  long samples_of_epoch = 0;
  std::vector<metric_sum> metric_sums;  // of the epoch so far: the loss, then each metric

  int next_pass = 0;                  // over the data
  bool in_pass = false;               // a pass has begun, and continues with the next batch
  long batches_of_pass = 0;           // so far
  std::optional<data_position> data;  // the position in the pass, if the source has one

  std::optional<double> learning_rate;      // set by hand; empty: the optimizer's schedule
  std::optional<double> new_learning_rate;  // after this epoch
  std::vector<double> loss_weights;         // of the outputs of a graph, in the order of the tape
  bool stop_training = false;               // after this epoch
  logs callbacks;                           // the state of those that have one
  training_history past;                    // of the epochs before this one
};

}  // namespace strata::core
