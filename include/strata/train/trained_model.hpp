// trained_model: what every trainer has besides fit, evaluate and predict.
#pragma once
#include <span>
#include <strata/train/deduced_program.hpp>
#include <strata/train/trainer_implementation.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
/// The weights, the optimizer, the layers and the processes of a trainer.
template <class Program, class Strategy>
class trained_model {
 public:
  using program_type = Program;
  using strategy_type = Strategy;
  using value_type = typename Program::value_type;
  using network = typename Program::network;
  using executor_type = typename Strategy::template executor<Program>;

 protected:
  using T = value_type;
  using weights_file = please_include_strata_train_weights_file<network, T>;
  detail::training<Program, Strategy> training_;
  friend struct detail::layers_of_trainer;

  template <class... Extra>
  explicit trained_model(typename Program::optimizer&& optimizer, const Extra&... extra)
      : training_(std::move(optimizer), extra...) {}

 public:
  /// In a process that only serves others, such as a parameter server: returns true when the training is over. In all other
  /// processes: returns false at once. fit calls it first; a program that does more than fit calls it before.
  bool serve() { return training_.executor.serve(); }

  /// All weights and state in one block, laid out by layout_of_program<program_type>.
  std::span<const T> parameters() const { return training_.executor.parameters(); }
  /// Replaces them. Throws strata_error for another size.
  void set_parameters(std::span<const T> values) { training_.set_parameters(values); }

  /// Needs <strata/train/weights_file.hpp>. A name that ends in .weights.h5, .keras or .h5 gives a file of Keras and needs
  /// <strata/interop/keras/keras_files.hpp>, too; any other name gives safetensors, one tensor per parameter.
  /// Throws strata_error; the file is complete or absent.
  template <class Path>
  void save_weights(const Path& path) const {
    const announced_work saves(training_.executor.group(), "saves weights");
    weights_file::template save<Program>(path, training_.executor);
  }
  /// Reads such a file, including the state of the optimizer and its learning rate if a file of Keras has them for the same
  /// optimizer. Throws strata_error naming the layer that differs; then nothing has changed.
  template <class Path>
  void load_weights(const Path& path) {
    weights_file::template load<Program>(path, training_.executor);
  }

  /// The learning rate of the next update.
  double learning_rate() const { return training_.executor.learning_rate(); }
  /// Replaces the optimizer's schedule by a constant rate. Throws strata_error if it is negative or not finite.
  void set_learning_rate(double rate) { training_.executor.set_learning_rate(rate); }

  /// Resets the optimizer to that of a new trainer: its moments, and the number of updates, with which a schedule begins again.
  /// Weights stay, and so does a rate from set_learning_rate. After a loss that is not finite, load or set finite weights, too. A
  /// collective call of all processes that train together.
  void reset_optimizer();

  /// Freezes a layer, or trains it again, from the next step on. Its name is that in the summary; in a graph, the part behind the
  /// slash. No update changes the weights of a frozen layer, its regularizers add no penalty, and no gradient is computed below
  /// the first layer that trains. A collective call. Files of weights and snapshots do not store this setting. See frozen<...>
  /// for what is never trained.
  ///   model.set_trainable("conv2d", false);
  /// Throws strata_error for a name that no layer has, and for a batch_norm, which computes something else when it is frozen.
  /// https://keras.io/guides/transfer_learning
  void set_trainable(const std::string& layer, bool trains);
  /// Whether an update changes any weight of that layer.
  bool is_trainable(const std::string& layer) const { return training_.layers.is_trainable(layer); }

  /// The gradient of the loss of each sample with respect to that sample, as predictions with the shape of the input; or of
  /// another loss, such as given_gradient, with which it is the product of a vector with the Jacobian matrix. Weights, batch_norm
  /// and dropout are those of predict. A span behind the other arguments receives the gradients instead.
  ///   model.gradients(x, y)  model.gradients(x, of_the_outputs, given_gradient{})
  ///   model.gradients<image>(of<image>(x), of<tags>(words), of<kind>(y), of<box>(z))
  ///   model.gradients<image, tags>(of<image>(x), of<tags>(words), of<kind>(v), compare<kind>(given_gradient{}))
  /// A graph names its inputs; several have a tuple. Its losses are those of the trainer, or of the nodes that are compared. This
  /// is computed by all cores of the processor, whatever device and however many threads train. Needs
  /// <strata/train/input_gradients.hpp>. Throws strata_error for labels outside the classes, and for sizes that do not match.
  template <class... Inputs, class... Arguments>
  auto gradients(Arguments&&... arguments) {
    using call = detail::please_include_strata_train_input_gradients<network, typename Program::precision>;
    using sentence = typename call::template verdict<Program, type_list<Inputs...>, Arguments&...>;
    static_assert(detail::diagnosed<sentence>[0]);
    if constexpr (std::is_same_v<sentence, detail::no_complaint>)
      return call::template of_trainer<Program, type_list<Inputs...>>(training_, arguments...);
    else
      return typename call::template result<type_list<Inputs...>, Arguments&...>();
  }

  executor_type& executor() { return training_.executor; }
  /// Whether this process prints and writes files: true in one of the processes that train together.
  bool is_chief() const { return training_.executor.group().is_chief(); }
};
}  // namespace core

template <class Program, class Strategy>
void core::trained_model<Program, Strategy>::reset_optimizer() {
  constexpr bool has_state = executor_type::traits.has_slots || executor_type::traits.collects_slots;
  static_assert(has_state, "reset_optimizer: the state of this optimizer is on parameter servers: restart them");
  if constexpr (has_state) detail::reset_optimizer(training_.executor);
}

template <class Program, class Strategy>
void core::trained_model<Program, Strategy>::set_trainable(const std::string& layer, bool trains) {
  constexpr bool freezes = executor_type::traits.freezes;
  static_assert(freezes,
                "set_trainable: this strategy, such as parameter_server, trains all layers: write frozen<...> around those that "
                "should not change");
  constexpr bool averages = traits_of_optimizer<typename Program::optimizer>.averages_weights;
  static_assert(!averages,
                "set_trainable: the optimizer ema averages the weights of all layers: write frozen<...> around those that "
                "should not change");
  training_.layers.set_trainable(layer, trains);
  if constexpr (freezes) training_.executor.freeze(training_.layers.frozen());
}

}  // namespace strata
