// early_stopping: ends a training whose validation loss stops improving.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// `fit(source, epochs(100), validation(test), early_stopping{.patience = 3, .restore_best_weights = true})`
/// Its state, the best weights included, belongs to the snapshots of backup_and_restore.
/// Throws strata_error for an unknown value, listing the known ones, and for invalid settings, before the first epoch.
/// https://keras.io/api/callbacks/early_stopping
struct early_stopping {
  std::string monitor = "val_loss";
  double min_delta = 0;  // a smaller change is no improvement
  int patience = 0;      // epochs without improvement, after which the training ends
  bool verbose = false;  // whether the chief prints what it does
  monitor_mode mode = monitor_mode::automatic;
  std::optional<double> baseline{};   // value to be reached within the patience
  bool restore_best_weights = false;  // at the end; otherwise the weights are those of the last epoch
  int start_from_epoch = 0;           // earlier epochs are ignored

  /// State of a training, not a setting.
  struct seen_so_far {
    std::optional<double> best{};
    int wait = 0, best_epoch = 0, stopped_epoch = -1;
    bool has_weights = false;
    std::vector<std::byte> best_weights{};
  } seen{};

  static constexpr const char* name = "early_stopping";

  /// The epoch in which the last training was stopped; empty if it ran all epochs.
  std::optional<int> stopped_epoch() const { return seen.stopped_epoch < 0 ? std::nullopt : std::optional(seen.stopped_epoch); }
  int best_epoch() const { return seen.best_epoch; }
  std::optional<double> best() const { return seen.best; }

  void on_train_begin(training_state& s) {
    detail::refuse_nan(name, "baseline", baseline);
    detail::refuse_negative(name, "patience", patience);
    detail::refuse_negative(name, "start_from_epoch", start_from_epoch);
    watched().check(s);
    if (!s.resumed) seen = {.best_weights = std::move(seen.best_weights)};
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    const detail::monitored watch = watched();
    if (watch.is_left_out(s)) return;
    const double current = watch.of(s.values);
    if (s.epoch < start_from_epoch) return;
    if (restore_best_weights && !seen.has_weights) remember(s.epoch, model);
    ++seen.wait;
    if (watch.is_better(current, seen.best)) {
      seen.best = current;
      if (restore_best_weights)
        remember(s.epoch, model);
      else
        seen.best_epoch = s.epoch;
      if (!baseline || watch.is_better(current, baseline)) seen.wait = 0;
      return;
    }
    if (seen.wait >= patience && s.epoch > 0) seen.stopped_epoch = s.epoch, s.stop_training = true;
  }
  void on_train_end(training_state& s, fitted_model& model) {
    if (s.interrupted) return;  // a later run continues
    const bool says = verbose && model.group().is_chief();
    if (says && seen.stopped_epoch >= 0) std::cout << detail::text_of({"Epoch ", seen.stopped_epoch + 1, ": early stopping\n"});
    if (!restore_best_weights || !seen.has_weights) return;
    if (says)
      std::cout << detail::text_of({"Restoring model weights from the end of the best epoch: ", seen.best_epoch + 1, ".\n"});
    const std::byte* from = seen.best_weights.data();
    for (const named_array& a : model.weights()) {
      std::copy_n(from, a.bytes.size(), a.bytes.data());
      from += a.bytes.size();
    }
    model.weights_changed();
  }

  std::string settings() const { return watched().settings(); }
  logs state() const {
    logs out{{"wait", double(seen.wait)},
             {"best_epoch", double(seen.best_epoch)},
             {"stopped_epoch", double(seen.stopped_epoch)},
             {"has_weights", double(seen.has_weights)}};
    detail::put_best(out, seen.best);
    return out;
  }
  void set_state(const logs& state) {
    seen.wait = detail::count_in(state, "wait"), seen.best_epoch = detail::count_in(state, "best_epoch"),
    seen.stopped_epoch = detail::count_in(state, "stopped_epoch");
    seen.has_weights = state["has_weights"] != 0;
    seen.best = state.find("best");
  }
  /// The best weights, for snapshots.
  std::vector<named_array> arrays(fitted_model& model) {
    if (!restore_best_weights) return {};
    std::vector<named_array> all = model.weights();
    seen.best_weights.resize(bytes_of(all));
    std::byte* to = seen.best_weights.data();
    for (named_array& a : all) {
      a.bytes = {to, a.bytes.size()};
      to += a.bytes.size();
    }
    return all;
  }

 private:
  detail::monitored watched() const { return {name, monitor, mode, min_delta}; }
  static std::size_t bytes_of(const std::vector<named_array>& all) {
    std::size_t bytes = 0;
    for (const named_array& a : all) bytes += a.bytes.size();
    return bytes;
  }
  void remember(int epoch, fitted_model& model) {
    const std::vector<named_array> all = model.weights();
    seen.best_weights.clear();
    seen.best_weights.reserve(bytes_of(all));
    for (const named_array& a : all) seen.best_weights.insert(seen.best_weights.end(), a.bytes.begin(), a.bytes.end());
    seen.best_epoch = epoch, seen.has_weights = true;
  }
};
static_assert(core::stateful_callback<early_stopping>);

}  // namespace strata
