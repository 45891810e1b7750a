// The speed of predictions and training steps of a network, on batches in memory.
#pragma once
#include "../machine.hpp"
#include "architectures.hpp"

#include <functional>
#include <string>

namespace strata::bench {
using namespace core;

/// Multiply-adds of convolutions and dense layers in a training step of one sample: forward every kernel element is used once per
/// position; backward once more for its gradient, and once more for that of the input, unless no layer before it is trained.
[[gnu::cold]] double training_multiply_adds(std::span<const tape_node> nodes);

/// Selects the rows to measure, measures them, and prints one line of JSON per row.
class runner {
 public:
  std::string model, what;  // empty: all
  int batch = 0, threads = 0;
  double seconds = 1;
  bool only_lists = false;
  std::vector<float> digits;  // pixels of MNIST's images; empty: none

  /// Calls `step`, which processes `batch` samples, repeatedly for `seconds`; the fastest of some rounds counts, since other
  /// programs may use the machine. multiply_adds: per sample.
  void measure(const char* model, int batch, const char* what, int threads, long parameters, double multiply_adds,
               const std::function<void()>& step) const;
  bool wants(const char* model, int batch, const char* what) const;

  /// Measures predictions and training steps (Adam) of one network.
  template <class Network, int Batch, class Loss = sparse_categorical_crossentropy<>>
  void network(const char* name) const {
    const bool predicts = wants(name, Batch, "predict"), trains = wants(name, Batch, "train");
    if (!predicts && !trains) return;
    constexpr long parameters = layout_of<typename Network::items>.trainable_count;
    const data::array<float, Network::input_shape> x(numbers(Network::input_shape, long(batches) * Batch));
    trainer model{Network{}, adam{}, Loss{}, one_device{{.threads = threads}}};
    const int threads_used = model.executor().threads();
    if (predicts) {
      constexpr std::size_t inputs{Batch * Network::input_shape.size()}, outputs{Batch * Network::output_shape.size()};
      std::vector<float> out(outputs);
      std::size_t k = 0;
      measure(name, Batch, "predict", threads_used, parameters, double(multiply_adds_of<Network>),
              [&] { model.predict(x.values().subspan(k++ % batches * inputs, inputs), std::span<float>(out)); });
    }
    if (trains) {
      auto source = labelled<Loss, Network::output_shape.last()>(x) | data::batch<Batch>;
      auto at = source.begin();
      const double multiply_adds = training_multiply_adds(tape_of<typename Network::items>.nodes);
      measure(name, Batch, "train", threads_used, parameters, multiply_adds, [&] {
        if (at == source.end()) at = source.begin();
        model.train_step(*at);
        ++at;
      });
    }
  }

 private:
  static constexpr int batches = 16;  // in memory

  /// A batch of `count` samples: digits if there are enough of this shape, otherwise uniform in [0, 1).
  std::vector<float> numbers(shape of_sample, long samples) const;
  static std::vector<int> random_labels(std::size_t count, int classes);

  /// Class indices, or the samples themselves for a regression loss.
  template <class Loss, int Classes, shape S>
  static auto labelled(const data::array<float, S>& x) {
    if constexpr (Loss::labels == label_kind::dense)
      return data::from_tensor_slices(x, x);
    else
      return data::from_tensor_slices(x, random_labels(x.size(), Classes));
  }
};

// Each is defined in a file of its own.
void measure_digits(const runner&);
void measure_dense(const runner&);
void measure_vgg(const runner&);
void measure_resnet20(const runner&);
void measure_mobilenet(const runner&);
void measure_few_channels(const runner&);
void measure_many_channels(const runner&);

}  // namespace strata::bench
