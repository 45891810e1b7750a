// The state of evaluate and predict that callbacks read.
#pragma once
#include <strata/state/logs.hpp>

namespace strata {

/// A pass over the data without training: evaluate, the validation of fit, or predict.
struct pass_state {
  long batches = 0;  // batches read so far
  long samples = 0;
  bool in_fit = false;  // true in the validation of a fit
  /// on_test_batch_end, on_test_end: loss and metrics over the samples so far. Otherwise empty.
  logs values{};
};

}  // namespace strata
