// sidecar_evaluator: a separate process evaluates each new set of weights of a training.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/io/os.hpp>
#include <strata/state/logs.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/signal_watch.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {

/// When a sidecar_evaluator ends; 0: no limit.
struct sidecar_options {
  int max_evaluations = 0;
  std::chrono::milliseconds timeout{0};                          // without new weights
  std::chrono::milliseconds interval = std::chrono::seconds(1);  // between two checks of the file
};

/// `sidecar_evaluator{"backup/snapshot.safetensors"}.run(model, test)`: evaluates the model each time that a training replaces
/// the weights in that file: snapshots of backup_and_restore, or files of save_weights. The training does not wait for it;
/// weights that are replaced during an evaluation are skipped. It ends when the file is removed (backup_and_restore does so at
/// the end of a training), at SIGTERM, or as the options say. Without a timeout it waits for the file without a limit.
/// https://www.tensorflow.org/api_docs/python/tf/keras/utils/SidecarEvaluator
struct sidecar_evaluator {
  std::filesystem::path weights;  // the file need not exist yet
  sidecar_options options{};

  /// The evaluation of one set of weights.
  struct evaluation {
    std::optional<long> step;  // of the training, if the file is a snapshot
    logs values;

    /// step 1200 - loss: 0.2811 - accuracy: 0.9123
    friend std::ostream& operator<<(std::ostream& out, const evaluation& e) {
      if (e.step) out << "step " << *e.step << " - ";
      return out << e.values;
    }
  };

  /// Returns all evaluations, and calls `each` after each of them; the default prints it.
  /// Throws strata_error for settings that make no sense, and if the weights are damaged, or belong to another model.
  template <class Trainer, class Source>
  std::vector<evaluation> run(Trainer& model, Source&& source, const std::function<void(const evaluation&)>& each = print) {
    if (options.max_evaluations < 0 || options.timeout.count() < 0 || options.interval.count() <= 0)
      throw_error({"sidecar_evaluator: max_evaluations is ", options.max_evaluations, ", timeout ", options.timeout.count(),
                   " ms and interval ", options.interval.count(),
                   " ms, but the interval must be positive and the others must not be negative"});
    using clock = std::chrono::steady_clock;
    detail::termination_watch termination;
    std::vector<evaluation> all;
    std::optional<version> tried;
    int looks_in_vain = 0;
    for (auto last = clock::now(); !termination.requested();) {
      const std::optional<version> now = version_of(weights);
      // Between two renames of backup_and_restore the file does not exist, but the snapshot before it does.
      looks_in_vain = tried && !now && !std::filesystem::exists(detail::snapshot_before(weights)) ? looks_in_vain + 1 : 0;
      if (looks_in_vain > 1) return all;
      if (now && now != tried) {
        evaluation one;
        STRATA_TRY {
          one.step = step_of_snapshot();
          model.load_weights(weights);
          if (version_of(weights) != now) continue;  // the step may be that of the former file
        }
        STRATA_CATCH(const strata_error& failure) {
          if (version_of(weights) != now) continue;  // the file was replaced or removed meanwhile
          STRATA_THROW_AGAIN;
        }
        tried = now;
        one.values = model.evaluate(source);
        if (each) each(one);
        all.push_back(std::move(one));
        if (options.max_evaluations > 0 && int(all.size()) >= options.max_evaluations) return all;
        last = clock::now();
      } else if (options.timeout.count() > 0 && clock::now() - last >= options.timeout) {
        return all;
      } else {
        std::this_thread::sleep_for(options.interval);
      }
    }
    termination.acknowledge();
    return all;
  }

  static void print(const evaluation& one) { std::cout << one << std::endl; }

 private:
  /// A new file differs from the one that it replaces in at least one of these.
  using version = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;  // number, bytes and time

  static std::optional<version> version_of(const std::filesystem::path& file) {
    io::os::file_status status;
    if (!io::os::get_status_of_target(file, status)) return {};
    return version{status.number, status.size, status.modified};
  }
  std::optional<long> step_of_snapshot() const {
    const core::safetensors_file opened(weights);
    if (!opened.metadata().contains(detail::snapshot_version_key)) return {};
    return detail::position_of(opened.metadata(), weights.string()).step;
  }
};

}  // namespace strata
