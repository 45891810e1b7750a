// A network and its weights, for programs that predict and do not train.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/precision.hpp>
#include <strata/base/random.hpp>
#include <strata/base/reason.hpp>
#include <strata/base/reused_objects.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/engine.hpp>
#include <strata/data/core/column.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/network/equal_nodes.hpp>
#include <strata/network/sequential.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/predictions.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace core {
template <class Network, class T>
struct please_include_strata_train_weights_file;
}  // namespace core

namespace reasons {
inline constexpr reason a_predictor_of_a_graph_has_nodes_of_the_graph_that_is_trained{
    "the graph of the predictor has a node without weights, because the graph of the trainer does not have that node"};
inline constexpr reason a_predictor_takes_the_weights_of_a_trainer_of_its_network_or_of_a_graph_with_its_nodes{
    "a predictor takes the weights of a trainer of the same network, or of a graph that has all of its nodes"};
inline constexpr reason the_weights_of_a_trainer_have_its_precision{
    "the weights of a trainer are float or double as its precision is: give the predictor the same precision"};
}  // namespace reasons

namespace detail {
struct no_training : sgd {
  static constexpr bool predicts_only = true;
};

/// Defined in train/predicted_graph.hpp, which a predictor of other networks need not include.
template <class Program>
struct please_include_strata_train_graph_trainer;

/// Defined in train/input_gradients.hpp.
template <class Network, class Precision>
struct please_include_strata_train_input_gradients;

/// The program whose predictions a predictor computes. Its losses are never called.
template <class Network, class Precision>
struct program_to_predict {
  using type = program<Network, mean_squared_error, no_training, type_list<>, Precision>;
};
template <class Network, class Precision>
  requires is_graph<Network>
struct program_to_predict<Network, Precision> {
  template <class... Node>
  static auto compared(type_list<Node...>) ->
      typename in_order_of_nodes<typename Network::nodes, comparison<Node, mean_squared_error, type_list<>>...>::type;
  using type = program_of_graph<Network, no_training, Precision, decltype(compared(typename Network::outputs{}))>;
};

/// A trainer.
template <class M>
concept model_with_weights = requires(const M& model) {
  typename M::network;
  { model.parameters() } -> std::convertible_to<std::span<const typename M::value_type>>;
};
template <class Model>
struct precision_of_model {
  using type = precision::f32;
};
template <class Model>
  requires requires { typename Model::program_type; }
struct precision_of_model<Model> {
  using type = typename Model::program_type::precision;
};

/// The diagnostic about a trainer whose weights a predictor takes. A refused trainer has reported its own.
template <class Network, class T, class Model>
auto sentence_on_weights_of() {
  using from = typename Model::network;
  if constexpr (!requires { typename Model::program_type; })
    return std::type_identity<told>{};
  else if constexpr (!std::is_same_v<T, typename Model::value_type>)
    return std::type_identity<wrong_argument<typename precision_of_model<Model>::type,
                                             because<reasons::the_weights_of_a_trainer_have_its_precision>>>{};
  else if constexpr (std::is_same_v<from, Network>)
    return std::type_identity<no_complaint>{};
  else if constexpr (!is_graph<from> || !is_graph<Network>)
    return std::type_identity<wrong_argument<
        from, because<reasons::a_predictor_takes_the_weights_of_a_trainer_of_its_network_or_of_a_graph_with_its_nodes>>>{};
  else if constexpr (first_other_node<from, Network> >= 0)
    return std::type_identity<no_node<at_t<first_other_node<from, Network>, typename Network::nodes>,
                                      because<reasons::a_predictor_of_a_graph_has_nodes_of_the_graph_that_is_trained>>>{};
  else
    return std::type_identity<no_complaint>{};
}

template <class Network>
struct shapes_of_predictor {};
template <class Network>
  requires requires { Network::input_shape; }
struct shapes_of_predictor<Network> {
  static constexpr shape input_shape = Network::input_shape, output_shape = Network::output_shape;
};
}  // namespace detail

/// Predicts with constant weights: `predictor model{net{}, "net.safetensors"}`. Many threads may use one predictor at the same
/// time. Each call uses an engine with a copy of the weights, which later calls reuse; after set_parameters there are two or
/// three engines for each thread. A copy of a predictor shares the engines and the weights. It needs neither a loss nor an
/// optimizer, and compiles no kernel that is used in training only. On the CPU, the predictions have the same bits as those of a
/// trainer.
template <core::network Network, core::precision_policy Precision = precision::f32, class Backend = core::default_backend>
class predictor : public detail::shapes_of_predictor<Network> {
  using program_type = typename detail::program_to_predict<Network, Precision>::type;
  using engine_type = typename core::engine_for<program_type, Backend>::type;

 public:
  using value_type = typename Precision::value_type;
  using network = Network;
  using options = typename core::engine_options<Backend>::type;

  /// Reads a weights file, or a snapshot; needs <strata/train/weights_file.hpp>. Throws strata_error naming the layer
  /// that differs. A call uses one thread unless `how` says otherwise.
  template <class Path>
    requires(!std::convertible_to<const Path&, std::span<const value_type>> && !detail::model_with_weights<Path>)
  predictor(Network, const Path& weights_file, Precision = {}, options how = quiet()) : shared_(make(how)) {
    std::vector<value_type> weights(size_of_weights);
    core::please_include_strata_train_weights_file<Network, value_type>::load(weights_file, weights);
    shared_->newest = std::make_shared<const std::vector<value_type>>(std::move(weights));
  }
  /// Copies weights in the order of trainer::parameters(). Throws strata_error if their number differs.
  predictor(Network, std::span<const value_type> weights, Precision = {}, options how = quiet()) : shared_(make(how)) {
    shared_->newest = copy_of("predictor", weights);
  }
  /// Copies the weights of a trainer of the same network or, for a graph, of a graph that has all of its nodes:
  ///   predictor features{graph<seen>{}, model};
  template <detail::model_with_weights Model>
  predictor(Network, const Model& trained, Precision = {}, options how = quiet()) : shared_(make(how)) {
    shared_->newest = weights_from("predictor", trained);
  }
  /// Predicts on a device: `predictor model{net{}, "net.safetensors", gpu(0)}`, `{..., gpu(0), precision::mixed_bf16{}}`.
  template <class Weights>
  predictor(Network n, const Weights& weights, options how, Precision = {})
      : predictor(n, weights, Precision{}, std::move(how)) {}

  /// x: (count, input shape); out: (count, output shape). Allocates nothing once as many threads have predicted as many samples.
  /// Throws strata_error for other sizes, and for indices that are no row of an embedding.
  void predict(std::span<const value_type> x, std::span<value_type> out) const {
    std::optional<lent_engine> engine;
    detail::predict_in_pieces<program_type>(
        x, out, [&](int most) { engine.emplace(*shared_).prepare(most); },
        [&](const core::samples<value_type>& piece, value_type* to) {
          (*engine)->begin(core::purpose::inference, piece, core::philox{0});
          (*engine)->predict({to});
        });
  }
  auto predict(std::span<const value_type> x) const {
    static_assert(!detail::graph_of_several_ends<Network>,
                  "predict: a graph takes a column for each input: predict(of<image>(pixels), of<tags>(words))");
    if constexpr (!detail::graph_of_several_ends<Network>) {
      predictions<value_type, Network::output_shape> out;
      out.values.resize(x.size() / std::size_t(Network::input_shape.size()) * std::size_t(Network::output_shape.size()));
      predict(x, out.values);
      return out;
    } else {
      return predictions<value_type, shape{}>();
    }
  }
  /// The outputs of a graph for a column for each input, `of<image>(pixels)`, as trainer::predict returns them. Throws
  /// strata_error if the sizes of the columns do not match. Needs <strata/train/graph_trainer.hpp>.
  template <class... Columns>
    requires(detail::is_graph<Network> && sizeof...(Columns) > 0 && (detail::is_column<Columns> && ...))
  auto predict(const Columns&... columns) const {
    std::optional<lent_engine> engine;
    return detail::please_include_strata_train_graph_trainer<program_type>::predict(
        [&](int most) { engine.emplace(*shared_).prepare(most); },
        [&](const core::samples<value_type>& piece, const core::output_rows<value_type>& to) {
          (*engine)->begin(core::purpose::inference, piece, core::philox{0});
          (*engine)->predict(to);
        },
        columns...);
  }

  /// Gradients with respect to inputs, as trainer::gradients computes them, for a loss that is given:
  ///   model.gradients(x, y, sparse_categorical_crossentropy{})  model.gradients(x, of_the_outputs, given_gradient{}, result)
  ///   model.gradients<image>(of<image>(x), of<kind>(y), compare<kind>(sparse_categorical_crossentropy{}))
  /// Many threads may call it at the same time. It allocates nothing if a span receives the result, x and the truth have the
  /// numbers that the network reads, and as many threads have computed as many samples. It is computed by the threads of the
  /// predictor. Needs <strata/train/input_gradients.hpp>.
  template <class... Inputs, class... Arguments>
  auto gradients(Arguments&&... arguments) const {
    using call = detail::please_include_strata_train_input_gradients<Network, Precision>;
    using sentence = typename call::template verdict<void, core::type_list<Inputs...>, Arguments&...>;
    static_assert(detail::diagnosed<sentence>[0]);
    if constexpr (std::is_same_v<sentence, detail::no_complaint>) {
      kept_weights newest;
      {
        const std::lock_guard lock(shared_->mutex);
        newest = shared_->newest;
      }
      int threads = 1;
      if constexpr (requires { shared_->how.threads; }) threads = shared_->how.threads;
      return call::template call<void, core::type_list<Inputs...>>({*newest, newest, {}, shared_->gradient_engines, threads},
                                                                   arguments...);
    } else {
      return typename call::template result<core::type_list<Inputs...>, Arguments&...>();
    }
  }

  /// Allocates what `calls` concurrent calls with up to `samples` samples need, so that the first of them allocates nothing and
  /// takes no longer than the others. Throws strata_error for arguments below 1.
  void prepare(int samples = 1, int calls = 1) const {
    if (samples < 1 || calls < 1)
      throw_error({"prepare: ", samples, " samples and ", calls, " calls, but both numbers are at least 1"});
    const int most = std::min(samples, detail::most_predicted_at_once);
    std::vector<std::unique_ptr<lent_engine>> all;
    for (int k = 0; k < calls; ++k) {
      lent_engine& each = *all.emplace_back(std::make_unique<lent_engine>(*shared_));
      each.prepare(most);
      warm(*each, most);
    }
  }

  /// Replaces the weights of this predictor and of all its copies, while other threads predict: a call uses either the old
  /// weights or the new ones. The calling thread makes the engines with the new weights. A concurrent prediction does not wait
  /// for the copy, only, as always, for a call that takes an engine from the list. Throws strata_error if their number
  /// differs.
  void set_parameters(std::span<const value_type> weights) { replace_by(copy_of("set_parameters", weights)); }
  /// The same for the weights of a trainer, as the constructor takes them.
  template <detail::model_with_weights Model>
  void set_parameters(const Model& trained) {
    replace_by(weights_from("set_parameters", trained));
  }

 private:
  static options quiet() {
    options o;
    if constexpr (requires { o.threads; }) o.threads = 1;
    return o;
  }
  static constexpr std::size_t size_of_weights = std::size_t(core::layout_of_program<program_type>.size);
  using kept_weights = std::shared_ptr<const std::vector<value_type>>;
  static kept_weights copy_of(const char* call, std::span<const value_type> weights) {
    if (weights.size() != size_of_weights)
      throw_error({call, ": ", weights.size(), " weights, but the network has ", size_of_weights});
    return std::make_shared<const std::vector<value_type>>(weights.begin(), weights.end());
  }
  template <class Model>
  static kept_weights weights_from(const char* call, const Model& trained) {
    using sentence = typename decltype(detail::sentence_on_weights_of<Network, value_type, Model>())::type;
    static_assert(detail::diagnosed<sentence>[0]);
    if constexpr (!std::is_same_v<sentence, detail::no_complaint>) {
      return nullptr;
    } else if constexpr (std::is_same_v<typename Model::network, Network>) {
      return copy_of(call, trained.parameters());
    } else {
      std::vector<value_type> own(size_of_weights);
      detail::copy_weights_of_equal_nodes<typename Model::network, Network, value_type>(trained.parameters(), own);
      return std::make_shared<const std::vector<value_type>>(std::move(own));
    }
  }

  struct shared {
    explicit shared(options o) : how(o) {}
    options how;
    kept_weights newest{};
    std::mutex mutex{}, replacing{};
    std::vector<std::unique_ptr<engine_type>> idle{}, old{};  // idle: with the newest weights, old: with earlier ones
    std::size_t lent = 0, most_lent = 0;
    long version = 0;
    int samples = 0;  // samples of the largest call for which engines have memory
    detail::reused_objects gradient_engines{};

    std::unique_ptr<engine_type> make_engine() const {
      return std::make_unique<engine_type>(how, core::leaf_policy_of<program_type>(0, 1), 0);
    }
    /// Reserves room in each list for all engines and `more`, so that returning an engine cannot fail.
    void reserve(std::size_t more) {
      const std::size_t all = idle.size() + old.size() + lent + more;
      idle.reserve(all), old.reserve(all);
    }
    void lend() { most_lent = std::max(most_lent, ++lent); }
  };
  static std::shared_ptr<shared> make(options how) {
    detail::refuse_negative(how);
    if constexpr (requires { how.devices; })
      for (const auto& each : how.devices) (void)core::device_of<Backend>(each);  // throws if there is no such device
    return std::make_shared<shared>(how);
  }

  /// The first prediction of an engine allocates, and makes derived layouts of the weights.
  static void warm(engine_type& engine, int samples) {
    constexpr const core::end_sizes& ends = core::ends_of_program<program_type>;
    std::vector<value_type> x[core::max_ends], out[core::max_ends];
    strata::core::samples<value_type> batch;
    core::output_rows<value_type> to;
    batch.count = samples;
    for (int k = 0; k < ends.input_count; ++k) x[k].resize(std::size_t(samples * ends.inputs[k])), batch.inputs[k] = x[k].data();
    for (int k = 0; k < ends.output_count; ++k) out[k].resize(std::size_t(samples * ends.outputs[k])), to.at[k] = out[k].data();
    engine.prepare(samples, core::purpose::inference, 1);
    engine.begin(core::purpose::inference, batch, core::philox{0});
    engine.predict(to);
  }

  void replace_by(const kept_weights& next) {
    shared& all = *shared_;
    const std::lock_guard one_at_a_time(all.replacing);
    std::vector<std::unique_ptr<engine_type>> engines;
    int samples = 0;
    {
      const std::lock_guard lock(all.mutex);
      engines.resize(std::max<std::size_t>(1, all.most_lent));
      samples = all.samples;
      for (auto& each : engines) {
        if (all.old.empty()) break;
        each = std::move(all.old.back()), all.old.pop_back();
      }
    }
    for (auto& each : engines) {
      if (!each) each = all.make_engine();
      each->write_parameters(*next);
      if (samples > 0) warm(*each, samples);
    }
    const std::lock_guard lock(all.mutex);
    all.reserve(engines.size());
    all.newest = next, ++all.version;
    for (auto& each : all.idle) all.old.push_back(std::move(each));
    all.idle.clear();
    for (auto& each : engines) all.idle.push_back(std::move(each));
  }

  /// An engine that no other call uses, with the newest weights.
  class lent_engine {
   public:
    explicit lent_engine(shared& from) : from_(from) {
      kept_weights missing;
      {
        const std::lock_guard lock(from_.mutex);
        version_ = from_.version;
        auto& some = from_.idle.empty() ? from_.old : from_.idle;
        if (!some.empty()) engine_ = std::move(some.back()), some.pop_back();
        if (&some == &from_.idle)
          from_.lend();
        else
          missing = from_.newest;
      }
      if (!missing) return;
      if (!engine_) engine_ = from_.make_engine();
      engine_->write_parameters(*missing);
      // Counted only here, where nothing can fail any more: set_parameters makes as many engines as are counted.
      const std::lock_guard lock(from_.mutex);
      from_.reserve(1);
      from_.lend();
    }
    lent_engine(const lent_engine&) = delete;
    lent_engine& operator=(const lent_engine&) = delete;
    ~lent_engine() {
      const std::lock_guard lock(from_.mutex);
      --from_.lent;
      from_.samples = std::max(from_.samples, samples_);
      (version_ == from_.version ? from_.idle : from_.old).push_back(std::move(engine_));
    }
    void prepare(int samples) {
      engine_->prepare(samples, core::purpose::inference, 1);
      samples_ = samples;
    }
    engine_type* operator->() const { return engine_.get(); }
    engine_type& operator*() const { return *engine_; }

   private:
    shared& from_;
    std::unique_ptr<engine_type> engine_;
    long version_ = 0;
    int samples_ = 0;
  };

  std::shared_ptr<shared> shared_;
};
template <class Network, detail::model_with_weights Model>
predictor(Network, const Model&) -> predictor<Network, typename detail::precision_of_model<Model>::type>;
template <class Network, class Weights, class Device, core::precision_policy Precision = precision::f32>
  requires std::convertible_to<Device, typename core::engine_options<typename Device::backend>::type>
predictor(Network, Weights, Device, Precision = {}) -> predictor<Network, Precision, typename Device::backend>;
template <class Network, class Weights, core::precision_policy Precision, class Device>
  requires std::convertible_to<Device, typename core::engine_options<typename Device::backend>::type>
predictor(Network, Weights, Precision, Device) -> predictor<Network, Precision, typename Device::backend>;

}  // namespace strata
