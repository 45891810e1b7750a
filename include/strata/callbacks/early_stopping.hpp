// early_stopping: ends a training whose validation loss no longer falls.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <limits>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct early_stopping_options {
  std::string monitor = "val_loss";
  double min_delta = 0;  // a smaller change is no improvement
  int patience = 0;      // epochs without improvement, after which the training ends
  bool verbose = false;  // whether the chief prints what it does
  monitor_mode mode = monitor_mode::automatic;
  std::optional<double> baseline{};   // that has to be reached within the patience
  bool restore_best_weights = false;  // at the end; otherwise the weights are those of the last epoch
  int start_from_epoch = 0;           // epochs before it are not looked at
};

/// `fit(source, epochs(100), validation(test), early_stopping{{.patience = 3, .restore_best_weights = true}})`
/// Its state, the best weights included, belongs to the snapshots of backup_and_restore.
/// Throws strata::error for an unknown value, with the known ones.  https://keras.io/api/callbacks/early_stopping
class early_stopping {
  early_stopping_options options_;
  detail::monitored monitored_;
  int wait_ = 0, best_epoch_ = 0, stopped_epoch_ = -1;
  bool has_weights_ = false;
  std::vector<std::byte> best_weights_;

 public:
  static constexpr const char* name = "early_stopping";

  explicit early_stopping(early_stopping_options options = {})
      : options_(std::move(options)), monitored_(name, options_.monitor, options_.mode, options_.min_delta) {
    detail::refuse_nan(name, "baseline", options_.baseline);
    detail::refuse_negative(name, "patience", options_.patience);
    detail::refuse_negative(name, "start_from_epoch", options_.start_from_epoch);
  }

  /// Of the training that has ended; nothing if it went through all epochs.
  std::optional<int> stopped_epoch() const { return stopped_epoch_ < 0 ? std::nullopt : std::optional(stopped_epoch_); }
  int best_epoch() const { return best_epoch_; }
  std::optional<double> best() const { return monitored_.best; }

  void on_train_begin(training_state& s) {
    if (s.resumed) return;
    monitored_.best.reset();
    wait_ = best_epoch_ = 0, stopped_epoch_ = -1;
    has_weights_ = false;
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (monitored_.is_left_out(s)) return;
    const double current = monitored_.of(s.values);
    if (s.epoch < options_.start_from_epoch) return;
    if (options_.restore_best_weights && !has_weights_) remember(s.epoch, model);
    ++wait_;
    if (monitored_.is_better(current, monitored_.best)) {
      monitored_.best = current;
      if (options_.restore_best_weights)
        remember(s.epoch, model);
      else
        best_epoch_ = s.epoch;
      if (!options_.baseline || monitored_.is_better(current, options_.baseline)) wait_ = 0;
      return;
    }
    if (wait_ >= options_.patience && s.epoch > 0) stopped_epoch_ = s.epoch, s.stop_training = true;
  }
  void on_train_end(training_state& s, fitted_model& model) {
    if (s.interrupted) return;  // a later run continues
    const bool says = options_.verbose && model.group().is_chief();
    if (says && stopped_epoch_ >= 0) std::cout << detail::text_of({"Epoch ", stopped_epoch_ + 1, ": early stopping\n"});
    if (!options_.restore_best_weights || !has_weights_) return;
    if (says) std::cout << detail::text_of({"Restoring model weights from the end of the best epoch: ", best_epoch_ + 1, ".\n"});
    const std::byte* from = best_weights_.data();
    for (const named_array& a : model.weights()) {
      std::copy_n(from, a.bytes.size(), a.bytes.data());
      from += a.bytes.size();
    }
    model.weights_changed();
  }

  std::string settings() const { return monitored_.settings(); }
  logs state() const {
    logs out{{"wait", double(wait_)},
             {"best_epoch", double(best_epoch_)},
             {"stopped_epoch", double(stopped_epoch_)},
             {"has_weights", double(has_weights_)}};
    detail::put_best(out, monitored_.best);
    return out;
  }
  void set_state(const logs& state) {
    wait_ = detail::count_in(state, "wait"), best_epoch_ = detail::count_in(state, "best_epoch"),
    stopped_epoch_ = detail::count_in(state, "stopped_epoch");
    has_weights_ = state["has_weights"] != 0;
    monitored_.best = state.find("best");
  }
  /// The best weights, for snapshots.
  std::vector<named_array> arrays(fitted_model& model) {
    if (!options_.restore_best_weights) return {};
    std::vector<named_array> all = model.weights();
    best_weights_.resize(bytes_of(all));
    std::byte* to = best_weights_.data();
    for (named_array& a : all) {
      a.bytes = {to, a.bytes.size()};
      to += a.bytes.size();
    }
    return all;
  }

 private:
  static std::size_t bytes_of(const std::vector<named_array>& all) {
    std::size_t bytes = 0;
    for (const named_array& a : all) bytes += a.bytes.size();
    return bytes;
  }
  void remember(int epoch, fitted_model& model) {
    const std::vector<named_array> all = model.weights();
    best_weights_.clear();
    best_weights_.reserve(bytes_of(all));
    for (const named_array& a : all) best_weights_.insert(best_weights_.end(), a.bytes.begin(), a.bytes.end());
    best_epoch_ = epoch, has_weights_ = true;
  }
};
static_assert(stateful_callback<early_stopping>);

}  // namespace strata
