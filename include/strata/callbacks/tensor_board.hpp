// tensor_board: curves, histograms and the graph of a training, for TensorBoard. Needs protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/callbacks/monitor.hpp>
#include <strata/callbacks/network_graph.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/interop/event_file.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct tensor_board_options {
  int histogram_freq = 0;     // epochs between two histograms of each weight; 0: none
  bool write_grads = false;   // histograms of the gradients of the last update, too
  bool write_graph = true;    // write the graph of the network, once
  bool write_images = false;  // each weight as an image, too, whenever its histogram is written
  bool write_steps_per_second = false;
  long update_every_batches = 0;  // Keras' update_freq: updates between two values of batch_loss; 0: only epochs
};

/// `fit(source, epochs(10), validation(test), tensor_board{"logs/run1"})`, then `tensorboard --logdir logs`.
/// Tags are those of Keras: epoch_loss and epoch_<metric> in logs/run1/train and logs/run1/validation, epoch_learning_rate,
/// batch_loss, evaluation_<metric>_vs_iterations, dense/kernel/histogram, dense/kernel/gradient, dense/kernel/image. Only the
/// chief writes, on a thread of its own. A training that backup_and_restore continues writes a new file beside the earlier ones,
/// which TensorBoard joins. Throws strata_error for a number below 0, before the first epoch, and at the end of an epoch
/// if a file could not be written.  https://keras.io/api/callbacks/tensorboard
struct tensor_board {
  using clock = std::chrono::steady_clock;

  std::filesystem::path folder = "logs";
  tensor_board_options options{};

  /// State of a training, not a setting.
  struct written_so_far {
    std::unique_ptr<event_file> train{}, validation{};
    clock::time_point epoch_began{}, batch_began{};
    long steps_before = 0;
  } written{};

  void on_train_begin(training_state& s, fitted_model& model) {
    detail::refuse_negative("tensor_board", "histogram_freq", options.histogram_freq);
    detail::refuse_negative("tensor_board", "update_every_batches", double(options.update_every_batches));
    written = {};
    keep_gradients(s, model);
    if (options.write_graph && model.group().is_chief())
      opened(written.train, "train").graph(detail::network_graph(model.view()).bytes());
  }
  void on_epoch_begin(training_state& s, fitted_model& model) {
    keep_gradients(s, model);
    written.epoch_began = clock::now();
    written.steps_before = s.step;
  }
  void on_batch_begin(training_state&) {
    if (options.update_every_batches > 0 && options.write_steps_per_second) written.batch_began = clock::now();
  }
  void on_batch_end(training_state& s, fitted_model& model) {
    if (options.update_every_batches == 0 || !s.reaches_multiple_of(options.update_every_batches) || !model.group().is_chief())
      return;
    event_file& file = opened(written.train, "train");
    file.scalar("batch_loss", s.loss, s.step);
    if (options.write_steps_per_second)
      file.scalar("batch_steps_per_second", double(s.batches) / seconds_since(written.batch_began), s.step);
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (!model.group().is_chief()) return;
    event_file& train = opened(written.train, "train");
    for (const auto& [name, value] : s.values) {
      if (name.starts_with("val_")) {
        event_file& validation = opened(written.validation, "validation");
        validation.scalar("epoch_" + name.substr(4), value, s.epoch);
        validation.scalar("evaluation_" + name.substr(4) + "_vs_iterations", value, s.step);
      } else if (name != "learning_rate") {
        train.scalar("epoch_" + name, value, s.epoch);
      }
    }
    train.scalar("epoch_learning_rate", s.learning_rate, s.epoch);
    if (options.write_steps_per_second)
      train.scalar("epoch_steps_per_second", double(s.step - written.steps_before) / seconds_since(written.epoch_began), s.epoch);
    if (has_histograms(s)) write_weights(train, s.epoch, model);
    train.flush();
    if (written.validation) written.validation->flush();
  }
  void on_train_end(training_state&) { written.train.reset(), written.validation.reset(); }

 private:
  event_file& opened(std::unique_ptr<event_file>& file, const char* name) const {
    if (!file) file = std::make_unique<event_file>(folder / name);
    return *file;
  }
  bool has_histograms(const training_state& s) const {
    return options.histogram_freq > 0 && s.epoch % options.histogram_freq == 0;
  }
  void keep_gradients(const training_state& s, fitted_model& model) const {
    if (options.write_grads && model.group().is_chief()) model.keep_gradients(has_histograms(s));
  }
  static double seconds_since(clock::time_point then) { return std::chrono::duration<double>(clock::now() - then).count(); }

  void write_weights(event_file& file, int epoch, fitted_model& model) const {
    std::vector<double> values;
    const auto read = [&](const named_array& a) {
      values.resize(a.bytes.size() / model.element_size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(a, i, model.element_size());
    };
    for (const named_array& a : model.weights()) {
      read(a);
      file.histogram(a.name + "/histogram", values, epoch);
      if (options.write_images) write_image(file, epoch, a, values);
    }
    for (const named_array& a : model.gradients()) {
      read(a);
      file.histogram(a.name + "/gradient", values, epoch);
    }
  }
  /// As in Keras: a vector is a column of pixels, a matrix lies on its longer side, and (height, width, filters) is an image for
  /// each filter; weights with more extents that are not 1, or with a nan, have no image. The smallest number is black, the
  /// largest white.
  static void write_image(event_file& file, int epoch, const named_array& a, const std::vector<double>& values) {
    std::vector<std::size_t> extents;
    for (const std::uint64_t extent : a.extents)
      if (extent != 1) extents.push_back(std::size_t(extent));
    if (extents.size() > 3 || !std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) return;
    extents.resize(3, 1);
    const std::size_t rows = extents[0], columns = extents[1], images = extents[2];
    const bool turned = images == 1 && columns > 1 && rows > columns;
    const std::size_t height = turned ? columns : rows, width = turned ? rows : columns;
    const auto [low, high] = std::ranges::minmax(values);
    std::vector<std::uint8_t> pixels;
    for (std::size_t k = 0; k < images; ++k)
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x) {
          const double v = values[((turned ? x * columns + y : y * columns + x)) * images + k];
          pixels.push_back(high > low ? std::uint8_t(255 * ((v - low) / (high - low)) + 0.5) : std::uint8_t(0));
        }
    file.image(a.name + "/image", pixels, std::uint32_t(height), std::uint32_t(width), 1, epoch);
  }
  static double element(const named_array& a, std::size_t i, std::size_t size) {
    if (size == sizeof(double)) return reinterpret_cast<const double*>(a.bytes.data())[i];
    return double(reinterpret_cast<const float*>(a.bytes.data())[i]);
  }
};
static_assert(core::callback<tensor_board>);

}  // namespace strata
