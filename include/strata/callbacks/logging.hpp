// logging: what a training does, as lines of a log of spdlog.
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

struct logging_options {
  int every_batches = 0;                                  // a line with the loss after so many updates, too; 0: none
  spdlog::level::level_enum level = spdlog::level::info;  // of all lines
};

/// `fit(source, epochs(10), logging{})` writes a line when a training begins or is resumed, after each epoch with loss and
/// metrics, when an evaluation outside of fit ends, and at the end, to the default logger of spdlog or to another one:
/// `logging{spdlog::get("training"), {.every_batches = 100}}`. Only the chief writes. Throws strata::error without a logger or
/// for a number below 0.  https://github.com/gabime/spdlog
class logging {
  std::shared_ptr<spdlog::logger> to_;
  logging_options options_;
  long next_ = 0;  // update after which the next line is due

  static std::string text(const logs& values) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << values;
    return out.str();
  }
  template <class... Arguments>
  void write(fitted_model& model, spdlog::format_string_t<Arguments...> format, Arguments&&... arguments) {
    if (model.group().is_chief()) to_->log(options_.level, format, std::forward<Arguments>(arguments)...);
  }

 public:
  explicit logging(logging_options options = {}) : logging(spdlog::default_logger(), options) {}
  explicit logging(std::shared_ptr<spdlog::logger> to, logging_options options = {}) : to_(std::move(to)), options_(options) {
    if (!to_) throw_error("logging: there is no such logger");
    if (options_.every_batches < 0) throw_error({"logging: every_batches = ", options_.every_batches, ": it must be at least 0"});
  }

  void on_train_begin(training_state& s, fitted_model& model) {
    next_ = s.step + options_.every_batches;
    if (s.resumed)
      write(model, "training resumed at epoch {}/{}, after {} updates", s.epoch + 1, s.epochs, s.step);
    else
      write(model, "training begins: {} epochs", s.epochs - s.epoch);
  }
  void on_batch_end(training_state& s, fitted_model& model) {
    if (options_.every_batches == 0 || s.step < next_) return;
    next_ = s.step + options_.every_batches;
    write(model, "epoch {}/{}, update {}: loss: {:.6g}, learning_rate: {:.6g}", s.epoch + 1, s.epochs, s.step, s.loss,
          s.learning_rate);
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    write(model, "epoch {}/{}: {}", s.epoch + 1, s.epochs, text(s.values));
  }
  void on_train_end(training_state& s, fitted_model& model) {
    write(model, "training {} after {} updates", s.interrupted ? "interrupted" : "ends", s.step);
  }
  /// The values of a validation are in the line of the epoch.
  void on_test_end(pass_state& s, fitted_model& model) {
    if (!s.in_fit) write(model, "evaluation of {} samples: {}", s.samples, text(s.values));
  }
};
static_assert(callback<logging>);

}  // namespace strata
