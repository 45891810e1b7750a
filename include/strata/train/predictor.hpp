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
#include <strata/base/text.hpp>
#include <strata/concepts/engine.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/network/sequential.hpp>
#include <strata/optimizers/sgd.hpp>
#include <strata/program/engine_for.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/predictions.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

template <class Network, class T>
struct please_include_strata_train_weights_file;

/// Predicts with weights that do not change: `predictor model{net{}, "net.safetensors"}`. Many threads may use one predictor at
/// the same time. Each uses an engine with weights of its own, which later calls use again; a copy of a predictor shares all of
/// them. Neither a loss nor an optimizer is needed, and nothing that trains is compiled. The predictions have the bits of those
/// of a trainer, on the CPU.
template <network Network, precision_policy Precision = precision::f32, class Backend = default_backend>
class predictor {
  using program_type = program<Network, mean_squared_error, sgd, type_list<>, Precision>;  // only its network is computed
  using engine_type = typename engine_for<program_type, Backend>::type;

 public:
  using value_type = typename Precision::value_type;
  using network = Network;
  using options = typename engine_options<Backend>::type;
  static constexpr shape input_shape = Network::input_shape, output_shape = Network::output_shape;

  /// Reads a weights file, or a snapshot; needs <strata/train/weights_file.hpp>. Throws strata::error naming the layer that
  /// differs. A call uses one thread unless `how` says otherwise.
  template <class Path>
    requires(!std::convertible_to<const Path&, std::span<const value_type>>)
  predictor(Network, const Path& weights_file, Precision = {}, options how = quiet()) : shared_(make(how)) {
    please_include_strata_train_weights_file<Network, value_type>::load(weights_file, shared_->weights);
  }
  /// Copies weights in the order of trainer::parameters(). Throws strata::error for another number of them.
  predictor(Network, std::span<const value_type> weights, Precision = {}, options how = quiet()) : shared_(make(how)) {
    if (weights.size() != shared_->weights.size())
      throw_error({"predictor: ", weights.size(), " weights, but the network has ", shared_->weights.size()});
    std::ranges::copy(weights, shared_->weights.begin());
  }
  /// On a device: `predictor model{net{}, "net.safetensors", gpu(0)}`, `{..., gpu(0), precision::mixed_bf16{}}`.
  template <class Weights>
  predictor(Network n, const Weights& weights, options how, Precision = {})
      : predictor(n, weights, Precision{}, std::move(how)) {}

  /// x: (count, input shape); out: (count, output shape). Allocates nothing once as many threads have predicted as many samples.
  /// Throws strata::error for other sizes, and for indices that are no row of an embedding.
  void predict(std::span<const value_type> x, std::span<value_type> out) const {
    std::optional<lent_engine> engine;
    detail::predict_in_pieces<program_type>(
        x, out, [&](int most) { engine.emplace(*shared_)->prepare(most, purpose::inference, 1); },
        [&](const samples<value_type>& piece, value_type* to) {
          (*engine)->begin(purpose::inference, piece, philox{0});
          (*engine)->predict({to});
        });
  }
  predictions<value_type, output_shape> predict(std::span<const value_type> x) const {
    predictions<value_type, output_shape> out;
    out.values.resize(x.size() / std::size_t(input_shape.size()) * std::size_t(output_shape.size()));
    predict(x, out.values);
    return out;
  }

 private:
  static options quiet() {
    options o;
    if constexpr (requires { o.threads; }) o.threads = 1;
    return o;
  }
  struct shared {
    explicit shared(options o) : how(o) {}
    options how;
    std::vector<value_type> weights = std::vector<value_type>(std::size_t(layout_of_program<program_type>.size));
    std::mutex mutex{};
    std::vector<std::unique_ptr<engine_type>> idle{};
    std::size_t made = 0;
  };
  static std::shared_ptr<shared> make(options how) {
    detail::refuse_negative(how);
    if constexpr (requires { how.devices; })
      for (const auto& each : how.devices) (void)device_of<Backend>(each);  // throws if there is no such device
    return std::make_shared<shared>(how);
  }

  /// An engine that no other call uses.
  class lent_engine {
   public:
    explicit lent_engine(shared& from) : from_(from) {
      {
        const std::lock_guard lock(from_.mutex);
        if (!from_.idle.empty()) {
          engine_ = std::move(from_.idle.back());
          from_.idle.pop_back();
          return;
        }
        from_.idle.reserve(++from_.made);
      }
      engine_ = std::make_unique<engine_type>(from_.how, leaf_policy_of<program_type>(0, 1), 0);
      engine_->write_parameters(from_.weights);
    }
    lent_engine(const lent_engine&) = delete;
    lent_engine& operator=(const lent_engine&) = delete;
    ~lent_engine() {
      const std::lock_guard lock(from_.mutex);
      from_.idle.push_back(std::move(engine_));
    }
    engine_type* operator->() const { return engine_.get(); }

   private:
    shared& from_;
    std::unique_ptr<engine_type> engine_;
  };

  std::shared_ptr<shared> shared_;
};
template <class Network, class Weights, class Device, precision_policy Precision = precision::f32>
  requires std::convertible_to<Device, typename engine_options<typename Device::backend>::type>
predictor(Network, Weights, Device, Precision = {}) -> predictor<Network, Precision, typename Device::backend>;
template <class Network, class Weights, precision_policy Precision, class Device>
  requires std::convertible_to<Device, typename engine_options<typename Device::backend>::type>
predictor(Network, Weights, Precision, Device) -> predictor<Network, Precision, typename Device::backend>;

}  // namespace strata
