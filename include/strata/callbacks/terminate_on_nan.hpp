// terminate_on_nan: a loss that is nan or infinite ends the training without an error.
#pragma once
#include <cmath>
#include <iostream>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/fitted_model.hpp>

namespace strata {

/// Without it, fit throws an error that names the batch and what is wrong with it.
/// https://keras.io/api/callbacks/terminate_on_nan
struct terminate_on_nan {
  void on_train_begin(training_state& s) { s.bad_loss_ends_training = true; }
  void on_batch_end(training_state& s, fitted_model& model) {
    if (std::isfinite(s.loss) || !model.group().is_chief()) return;
    std::clog << detail::text_of({"epoch ", s.epoch + 1, ", update ", s.step, ": the loss is ", s.loss, ", the training ends",
                                  detail::after_bad_step, "\n"});
  }
};
static_assert(core::callback<terminate_on_nan>);

}  // namespace strata
