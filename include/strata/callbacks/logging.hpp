// logging: writes the progress of a training to a log of spdlog.
// needs: spdlog
#pragma once
#include <spdlog/spdlog.h>

#include <locale>
#include <memory>
#include <sstream>
#include <strata/base/error.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <utility>

namespace strata {

/// `fit(source, epochs(10), logging{})` logs a line when a training begins or is resumed, after each epoch with its loss and
/// metrics, when an evaluation outside of fit ends, and at the end. It uses the default logger of spdlog, or another one:
/// `logging{.every_batches = 100, .to = spdlog::get("training")}`. Only the chief writes. Before the first epoch, throws
/// strata_error if there is no logger or every_batches is negative.  https://github.com/gabime/spdlog
struct logging {
  int every_batches = 0;                                  // a line with the loss after so many updates, too; 0: none
  spdlog::level::level_enum level = spdlog::level::info;  // level of all lines
  std::shared_ptr<spdlog::logger> to = spdlog::default_logger();
  long next = 0;  // the update after which the next line is due; not a setting

  void on_train_begin(training_state& s, fitted_model& model) {
    if (every_batches < 0) throw_error({"logging: every_batches = ", every_batches, ": it must be at least 0"});
    next = s.step + every_batches;
    if (s.resumed)
      write(model, "training resumed at epoch {}/{}, after {} updates", s.epoch + 1, s.epochs, s.step);
    else
      write(model, "training begins: {} epochs", s.epochs - s.epoch);
  }
  void on_batch_end(training_state& s, fitted_model& model) {
    if (every_batches == 0 || s.step < next) return;
    next = s.step + every_batches;
    write(model, "epoch {}/{}, update {}: loss: {:.6g}, learning_rate: {:.6g}", s.epoch + 1, s.epochs, s.step, s.loss,
          s.learning_rate);
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    write(model, "epoch {}/{}: {}", s.epoch + 1, s.epochs, text(s.values));
  }
  void on_train_end(training_state& s, fitted_model& model) {
    write(model, "training {} after {} updates", s.interrupted ? "interrupted" : "ends", s.step);
  }
  /// Logs an evaluation outside of fit: the values of a validation are in the line of the epoch.
  void on_test_end(pass_state& s, fitted_model& model) {
    if (!s.in_fit) write(model, "evaluation of {} samples: {}", s.samples, text(s.values));
  }

 private:
  static std::string text(const logs& values) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << values;
    return out.str();
  }
  template <class... Arguments>
  void write(fitted_model& model, spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
    if (!to) throw_error("logging: the logger is null");
    if (model.group().is_chief()) to->log(level, format, std::forward<Arguments>(arguments)...);
  }
};
static_assert(core::callback<logging>);

}  // namespace strata
