// trainer{network{}, optimizer, loss{}, metrics..., strategy}: compile, fit, evaluate, predict.
#pragma once
#include <cstdint>
#include <span>
#include <strata/distribute/one_device.hpp>
#include <strata/network/summary.hpp>
#include <strata/train/deduced_program.hpp>
#include <strata/train/predictions.hpp>
#include <strata/train/trained_model.hpp>
#include <string>
#include <type_traits>

namespace strata {

/// The whole training program. Its type holds network, loss, optimizer, metrics, precision and strategy, from which the
/// compiler derives kernels and memory.  https://keras.io/api/models/model_training_apis
template <class Program, class Strategy>
class trainer : public core::trained_model<Program, Strategy> {
  static_assert(sizeof(typename Strategy::template executor<Program>) &&
                detail::diagnosed<detail::trainer_verdict<Program, Strategy>>[0]);
  using model = core::trained_model<Program, Strategy>;
  using model::training_;
  using typename model::T;
  using evaluation = detail::evaluated<detail::reported_metrics<Program>::numbers>;

 public:
  using model::executor;
  using model::serve;
  using typename model::network;

  /// Throws strata_error if the settings of the optimizer are invalid.
  template <class... Extra>
  explicit trainer(network, typename Program::optimizer optimizer, typename Program::loss, const Extra&... extra);

  trainer(trainer&&) = default;
  trainer& operator=(trainer&&) = default;
  trainer(const trainer&) = delete;  // a function takes it by reference, trainer& or auto&; set_parameters copies its weights

  /// Trains on a batch_source for `epochs`; returns loss and metrics of each. In a process that only serves others, such as a
  /// parameter server, serves until the training is over and returns an empty history.
  /// Throws strata_error for labels outside the classes, indices that are no row of an embedding, an empty source, or a loss
  /// that is nan or infinite.
  template <class Source, class... Options>
  training_history fit(Source&& source, Options&&... options);

  /// Trains on arrays: x is (samples, shape of the input), y has a class index or the shape of the output for each sample. An
  /// array is contiguous elements, such as a vector, an array or a span, a range of std::arrays, or a data::array. Besides the
  /// other options, it takes `batch_size(32)` and `shuffle(true)`, which have these defaults, `sample_weight(weights)` and
  /// `validation_split(0.2)`. The samples are shuffled in the same order in all processes, and after a resume. In asynchronous
  /// training each worker reads its share of them. It also throws strata_error if the sizes of x and y do not match.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  training_history fit(X&& x, Y&& y, Options&&... options);

  /// Loss and metrics over a batch_source; callbacks may follow.
  template <class Source, class... Options>
  evaluation evaluate(Source&& source, Options&&... options);

  /// The overload for arrays, as in fit; `batch_size(32)`, `sample_weight(weights)` and callbacks may follow.
  template <detail::array_argument X, detail::array_argument Y, class... Options>
  evaluation evaluate(X&& x, Y&& y, Options&&... options);

  /// The network's output for each sample of an array, one sample or many, as in fit. Callbacks may follow. Throws strata_error
  /// if the elements of x do not make whole samples.
  template <detail::array_argument X, class... Options>
    requires(!detail::array_argument<Options> && ...)
  predictions<T, network::output_shape> predict(const X& x, Options&&... options);

  /// The network's output for each sample of a batch_source; labels are ignored. Callbacks may follow.
  template <class Source, class... Options>
    requires(!detail::array_argument<Source>)
  predictions<T, network::output_shape> predict(Source&& source, Options&&... options);

  /// Predicts samples in memory: x is (count, input shape), out (count, output shape). Throws strata_error for other sizes.
  void predict(std::span<const T> x, std::span<T> out) { training_.predict(x, out); }

  /// One update on one batch, for your own training loop. Returns (sum, count) of the loss and of each metric.
  /// Throws strata_error, before anything has changed, for an empty batch, arrays that are missing, labels that are no class and
  /// indices that are no row of an embedding.
  core::metric_sums<Program> train_step(const core::samples<T>& batch) { return training_.train_step(batch); }

  /// Sets mean and variance of each layer `normalization` that takes the raw data, from one pass over a batch_source: before fit,
  /// once. Labels are ignored. Every process of a training reads all of the data, so that all have equal weights. Throws
  /// strata_error, before anything has changed, for an empty source, a share of the data, and features that are nan, infinite or
  /// too large for the precision.
  template <class Source>
  void adapt(Source&& source);
};

template <class... Arguments>
trainer(Arguments...)
    -> trainer<typename detail::deduced_program<Arguments...>::program, typename detail::deduced_program<Arguments...>::strategy>;

/// The table of layers, shapes and parameters, as Keras prints it.
template <class Program, class Strategy>
std::string summary(const core::trained_model<Program, Strategy>& model) {
  return summary_of<typename Program::network>({.element_size = int(sizeof(typename Program::value_type)),
                                                .frozen_parameters = detail::layers_of_trainer::frozen_elements(model)});
}

}  // namespace strata

#include <strata/train/trainer.ipp>
