// sidecar_evaluator: a process beside the training tries out each new set of weights.
#pragma once
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/train/logs.hpp>
#include <strata/train/position_text.hpp>
#include <strata/train/termination_watch.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {

/// When a sidecar_evaluator ends; 0: not for that reason.
struct sidecar_options {
  int max_evaluations = 0;
  std::chrono::milliseconds timeout{0};                      // without new weights
  std::chrono::milliseconds interval = std::chrono::seconds(1);  // between two looks at the file
};

/// What some weights gave.
struct evaluation {
  std::optional<long> step;  // of the training, if the file is a snapshot
  logs values;

  /// step 1200 - loss: 0.2811 - accuracy: 0.9123
  friend std::ostream& operator<<(std::ostream& out, const evaluation& e) {
    if (e.step) out << "step " << *e.step << " - ";
    return out << e.values;
  }
};

/// `sidecar_evaluator{"backup/snapshot.safetensors"}.run(model, test)`: evaluates the model each time that a training puts other
/// weights into that file: snapshots of backup_and_restore, or what save_weights writes. The training does not wait for it;
/// weights that are replaced while others are evaluated are passed over. Ends when the file is removed, as it is at the end of a
/// training that backup_and_restore looks after, at SIGTERM, and as the options say. A file that never comes is awaited for ever
/// without a timeout. https://www.tensorflow.org/api_docs/python/tf/keras/utils/SidecarEvaluator
class sidecar_evaluator {
 public:
  /// The file need not be there yet.
  explicit sidecar_evaluator(std::filesystem::path weights, sidecar_options options = {})
      : file_(std::move(weights)), options_(options) {
    if (options_.max_evaluations < 0 || options_.timeout.count() < 0 || options_.interval.count() <= 0)
      throw error("sidecar_evaluator: max_evaluations is " + std::to_string(options_.max_evaluations) + ", timeout " +
                  std::to_string(options_.timeout.count()) + " ms and interval " + std::to_string(options_.interval.count()) +
                  " ms, but the interval must be positive and the others must not be negative");
  }

  /// Returns all evaluations, and calls `each` with one as soon as it is there; by default it is printed.
  /// Throws strata::error if the weights are not those of the model, or damaged.
  template <class Trainer, class Source>
  std::vector<evaluation> run(Trainer& model, Source&& source, const std::function<void(const evaluation&)>& each = print) {
    using clock = std::chrono::steady_clock;
    detail::termination_watch termination;
    std::vector<evaluation> all;
    std::optional<version> tried;
    int looks_in_vain = 0;
    for (auto last = clock::now(); !termination.requested();) {
      const std::optional<version> now = version_of(file_);
      looks_in_vain = tried && !now ? looks_in_vain + 1 : 0;
      if (looks_in_vain > 1) return all;  // once: between two renames of backup_and_restore there is no such file
      if (now && now != tried) {
        evaluation one;
        try {
          one.step = step_of_snapshot();
          model.load_weights(file_);
          if (version_of(file_) != now) continue;  // perhaps the step of one file, and the weights of another
        } catch (const error&) {
          if (version_of(file_) != now) continue;  // it was replaced meanwhile, or removed
          throw;
        }
        tried = now;
        one.values = model.evaluate(source);
        if (each) each(one);
        all.push_back(std::move(one));
        if (options_.max_evaluations > 0 && int(all.size()) >= options_.max_evaluations) return all;
        last = clock::now();
      } else if (options_.timeout.count() > 0 && clock::now() - last >= options_.timeout) {
        return all;
      } else {
        std::this_thread::sleep_for(options_.interval);
      }
    }
    termination.heed();
    return all;
  }

  static void print(const evaluation& one) { std::cout << one << std::endl; }

 private:
  /// A file that takes the place of another one differs in at least one of these.
  using version =
      std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;  // inode, bytes, seconds and nanoseconds of its time

  static std::optional<version> version_of(const std::filesystem::path& file) {
    struct stat facts {};
    if (::stat(file.c_str(), &facts) != 0) return {};
    return version{facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  }
  std::optional<long> step_of_snapshot() const {
    const safetensors_file opened(file_);
    if (!opened.metadata().contains(detail::snapshot_version_key)) return {};
    return detail::position_of(opened.metadata(), file_.string()).step;
  }

  std::filesystem::path file_;
  sidecar_options options_;
};

}  // namespace strata
