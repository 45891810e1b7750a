// average_weights: replaces the weights by their moving average at the end of fit.
#pragma once
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/take_averages.hpp>

namespace strata {

/// `trainer{network{}, ema{adam{}}, ...}.fit(source, epochs(10), average_weights{})` ends as Keras does with use_ema. If a signal
/// interrupts the training, the weights stay, for the run that continues it. Throws strata_error for another optimizer.
struct average_weights {
  void on_train_end(training_state& s, fitted_model& model) {
    if (s.interrupted || s.step == 0) return;
    detail::copy_averages(model.complete_view());
    model.weights_changed();
  }
};
static_assert(core::callback<average_weights>);

}  // namespace strata
