// model_checkpoint: saves the weights during training.
#pragma once
#include <filesystem>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/callbacks/pattern.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace strata {

struct model_checkpoint_options {
  std::string monitor = "val_loss";
  bool verbose = false;         // whether the chief prints what it saves
  bool save_best_only = false;  // instead of each time
  monitor_mode mode = monitor_mode::automatic;
  long save_every_batches = 0;                      // Keras' save_freq; 0: after each epoch
  std::optional<double> initial_value_threshold{};  // value that the first saved model must improve on
};

/// `model_checkpoint{"best.safetensors", {.save_best_only = true}}`; "{epoch:02d}-{val_loss:.2f}.safetensors" makes a file for
/// each epoch, counted from 1. The name has to end in .safetensors or, for a file of Keras, in .weights.h5, .keras, .h5 or .hdf5,
/// with <strata/interop/keras/keras_files.hpp> included; load_weights of a trainer reads such files. Each is complete, or not
/// there. {batch} is the number of the update, over all epochs. Only the chief writes. Another fit with the same callback goes on
/// with the best value so far. Throws strata_error for another name, for an unknown value, with the known ones, and for
/// settings that make no sense, before the first epoch, and for a file that cannot be written.
/// https://keras.io/api/callbacks/model_checkpoint
struct model_checkpoint {
  std::filesystem::path pattern;
  model_checkpoint_options options{};

  /// State of a training, not a setting.
  struct saved_so_far {
    std::optional<double> best{};
    long batches = 0;  // batches of this fit
  } saved{};

  static constexpr const char* name = "model_checkpoint";

  /// The best value of the file that was saved last, with save_best_only; before there is one, initial_value_threshold.
  std::optional<double> best() const { return saved.best ? saved.best : options.initial_value_threshold; }

  void on_train_begin(training_state& s) {
    const std::string file = pattern.string();
    if (!file.ends_with(".safetensors") && !detail::is_keras_file(file))
      throw_error({name, ": the name of '", file, "' has to end in .safetensors, .weights.h5, .keras, .h5 or .hdf5"});
    detail::require_format_of(file);
    detail::refuse_nan(name, "initial_value_threshold", options.initial_value_threshold);
    detail::refuse_negative(name, "save_every_batches", double(options.save_every_batches));
    if (options.save_best_only && options.save_every_batches > 0 && options.monitor != "loss")
      throw_error({name, ": with save_every_batches, only the loss of the batch is known, so monitor cannot be '",
                   options.monitor, '\''});
    if (!s.resumed) saved.batches = 0;
    const logs& known = options.save_every_batches > 0 ? logs{{"loss", 0}} : s.expected;
    if (known.empty()) return;
    if (options.save_best_only) watched().check(known);
    (void)file_name(1, 1, known);
  }
  void on_batch_end(training_state& s, fitted_model& model) {
    if (options.save_every_batches == 0) return;
    const auto before = std::exchange(saved.batches, saved.batches + s.batches);
    if (before / options.save_every_batches == saved.batches / options.save_every_batches) return;
    consider(s, logs{{"loss", s.loss}}, model);
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (options.save_every_batches == 0) consider(s, s.values, model);
  }

  std::string settings() const { return options.save_best_only ? watched().settings() : ""; }
  logs state() const {
    logs out{{"batches", double(saved.batches)}};
    detail::put_best(out, best());
    return out;
  }
  void set_state(const logs& state) {
    saved.batches = detail::count_in(state, "batches");
    saved.best = state.find("best");
  }

 private:
  /// With save_best_only.
  detail::monitored watched() const { return {name, options.monitor, options.mode, 0}; }
  std::string file_name(int epoch, long batch, const logs& values) const {
    return detail::filled_pattern(
        pattern.string(), epoch, batch, values,
        options.save_every_batches > 0 ? " (with save_every_batches, only the loss of the batch is known)" : nullptr);
  }
  void consider(const training_state& s, const logs& values, fitted_model& model) {
    if (options.save_best_only && watched().is_left_out(s)) return;
    const std::filesystem::path path = file_name(s.epoch + 1, s.step, values);
    if (options.save_best_only) {
      const double current = watched().of(values);
      if (!watched().is_better(current, best())) return;
      saved.best = current;
    }
    if (!model.group().is_chief()) return;
    const core::announced_work saves(model.group(), "saves weights");
    if (options.verbose) std::cout << detail::text_of({"Epoch ", s.epoch + 1, ": saving model to ", path.string(), "\n"});
    std::error_code failure;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
    if (failure) throw_error({name, ": cannot create the folder ", path.parent_path().string(), ": ", failure.message()});
    save_weights(path, model);
  }
};
static_assert(core::stateful_callback<model_checkpoint>);

}  // namespace strata
