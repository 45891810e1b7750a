// trainer{network{}, optimizer, loss{}, metrics..., strategy}: compile, fit, evaluate, predict.
#pragma once
#include <cstdint>
#include <span>
#include <strata/distribute/one_device.hpp>
#include <strata/network/summary.hpp>
#include <strata/train/deduced_program.hpp>
#include <strata/train/predictions.hpp>
#include <strata/train/trainer_implementation.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata {

/// The whole training program. Its type holds network, loss, optimizer, metrics, precision and strategy, from which the
/// compiler derives kernels and memory.  https://keras.io/api/models/model_training_apis
template <class Program, class Strategy>
class trainer {
 public:
  using program_type = Program;
  using strategy_type = Strategy;
  using value_type = typename Program::value_type;
  using network = typename Program::network;
  using executor_type = typename Strategy::template executor<Program>;

 private:
  static_assert(sizeof(executor_type) && detail::diagnosed<detail::trainer_verdict<Program, Strategy>>[0]);
  using T = value_type;
  using evaluation = detail::evaluated<detail::reported_metrics<Program>::numbers>;
  using weights_file = please_include_strata_train_weights_file<network, T>;
  detail::training<Program, Strategy> training_;
  friend struct detail::layers_of_trainer;

 public:
  /// Throws strata::error if the settings of the optimizer are invalid.
  template <class... Extra>
  explicit trainer(network, typename Program::optimizer optimizer, typename Program::loss, const Extra&... extra);

  trainer(trainer&&) = default;
  trainer& operator=(trainer&&) = default;
  trainer(const trainer&) = delete;  // a function takes it by reference, trainer& or auto&; set_parameters copies its weights

  /// Trains on a batch_source for `epochs`; returns loss and metrics of each. In a process that only serves others, such as a
  /// parameter server, serves until the training is over and returns an empty history.
  /// Throws strata::error for labels outside the classes, indices that are no row of an embedding, an empty source, or a loss
  /// that is nan or infinite.
  template <class Source, class... Options>
  history fit(Source&& source, Options&&... options);

  /// Trains on arrays: x is (samples, shape of the input), y has a class index or the shape of the output for each sample. An
  /// array is contiguous elements, such as a vector, an array or a span, a range of std::arrays, or a data::array. Besides the
  /// other options, it takes `batch_size(32)` and `shuffle(true)`, which have these defaults, `sample_weight(weights)` and
  /// `validation_split(0.2)`. The samples are shuffled in the same order in all processes, and after a resume. In asynchronous
  /// training each worker reads its share of them. It also throws strata::error if the sizes of x and y do not match.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  history fit(X&& x, Y&& y, Options&&... options);

  /// In a process that only serves others, such as a parameter server: returns true when the training is over. In all other
  /// processes: returns false at once. fit calls it first; a program that does more than fit calls it before.
  bool serve() { return training_.executor.serve(); }

  /// Loss and metrics over a batch_source; callbacks may follow.
  template <class Source, class... Options>
  evaluation evaluate(Source&& source, Options&&... options);

  /// The overload for arrays, as in fit; `batch_size(32)`, `sample_weight(weights)` and callbacks may follow.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  evaluation evaluate(X&& x, Y&& y, Options&&... options);

  /// The network's output for each sample of an array, one sample or many, as in fit. Callbacks may follow. Throws strata::error
  /// if the elements of x do not make whole samples.
  template <detail::array_argument X, class... Options>
    requires(!detail::array_argument<Options> && ...)
  predictions<T, network::output_shape> predict(const X& x, Options&&... options);

  /// The network's output for each sample of a batch_source; labels are ignored. Callbacks may follow.
  template <class Source, class... Options>
    requires(!detail::array_argument<Source>)
  predictions<T, network::output_shape> predict(Source&& source, Options&&... options);

  /// Predicts samples in memory: x is (count, input shape), out (count, output shape). Throws strata::error for other sizes.
  void predict(std::span<const T> x, std::span<T> out) { training_.predict(x, out); }

  /// One update on one batch, for your own training loop. Returns (sum, count) of the loss and of each metric.
  /// Throws strata::error, before anything has changed, for an empty batch, arrays that are missing, labels that are no class and
  /// indices that are no row of an embedding.
  metric_sums<Program> train_step(const samples<T>& batch) { return training_.train_step(batch); }

  /// All weights and state in one block, laid out by layout_of_program<program_type>.
  std::span<const T> parameters() const { return training_.executor.parameters(); }
  /// Replaces them. Throws strata::error for another size.
  void set_parameters(std::span<const T> values) { training_.set_parameters(values); }

  /// Sets mean and variance of each layer `normalization` that takes the raw data, from one pass over a batch_source: before fit,
  /// once. Labels are ignored. Every process of a training reads all of the data, so that all have equal weights. Throws
  /// strata::error, before anything has changed, for an empty source, a share of the data, and features that are nan, infinite or
  /// too large for the precision.
  template <class Source>
  void adapt(Source&& source);

  /// Needs <strata/train/weights_file.hpp>. A name that ends in .weights.h5, .keras or .h5 gives a file of Keras and needs
  /// <strata/interop/keras/keras_files.hpp>, too; any other name gives safetensors, one tensor per parameter.
  /// Throws strata::error; the file is complete or absent.
  template <class Path>
  void save_weights(const Path& path) const {
    const announced_work saves(training_.executor.group(), "saves weights");
    weights_file::template save<Program>(path, training_.executor);
  }
  /// Reads such a file, including the state of the optimizer and its learning rate if a file of Keras has them for the same
  /// optimizer. Throws strata::error naming the layer that differs; then nothing has changed.
  template <class Path>
  void load_weights(const Path& path) {
    weights_file::template load<Program>(path, training_.executor);
  }

  /// The learning rate of the next update.
  double learning_rate() const { return training_.executor.learning_rate(); }
  /// Replaces the optimizer's schedule by a constant rate. Throws strata::error if it is negative or not finite.
  void set_learning_rate(double rate) { training_.executor.set_learning_rate(rate); }

  /// Resets the optimizer to that of a new trainer: its moments, and the number of updates, with which a schedule begins again.
  /// Weights stay, and so does a rate from set_learning_rate. After a loss that is not finite, load or set finite weights, too. A
  /// collective call of all processes that train together.
  void reset_optimizer();

  /// Freezes a layer, by its name in the summary, or trains it again, from the next step on: no update changes the weights of a
  /// frozen layer, its regularizers add no penalty, and no gradient is computed below the first layer that trains. A collective
  /// call. Files of weights and snapshots do not store this setting. See frozen<...> for what is never trained.
  ///   model.set_trainable("conv2d", false);
  /// Throws strata::error for a name that the summary does not have, and for a batch_norm, which computes something else when it
  /// is frozen.  https://keras.io/guides/transfer_learning
  void set_trainable(const std::string& layer, bool trains);
  /// Whether an update changes any weight of that layer.
  bool is_trainable(const std::string& layer) const { return training_.layers.is_trainable(layer); }

  executor_type& executor() { return training_.executor; }
  /// Whether this process prints and writes files: true in one of the processes that train together.
  bool is_chief() const { return training_.executor.group().is_chief(); }
};

template <class... Arguments>
trainer(Arguments...)
    -> trainer<typename detail::deduced_program<Arguments...>::program, typename detail::deduced_program<Arguments...>::strategy>;

/// The table of layers, shapes and parameters, as Keras prints it.
template <class Program, class Strategy>
  requires(!std::is_void_v<Strategy>)
std::string summary(const trainer<Program, Strategy>& model) {
  return summary_of<typename Program::network>({.element_size = int(sizeof(typename Program::value_type)),
                                                .frozen_parameters = detail::layers_of_trainer::frozen_elements(model)});
}

}  // namespace strata

#include <strata/train/trainer.ipp>
