// program<...>: the whole training program as one type. It is what a strategy receives.
#pragma once
#include <strata/base/precision.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/network/layout.hpp>
#include <type_traits>

namespace strata {

/// Metrics: type_list<...>.
template <network Network, class Loss, class Optimizer, class Metrics, precision_policy Precision = precision::f32>
struct program {
  using network = Network;
  using loss = std::conditional_t<loss_function<Loss>, Loss, detail::stand_in_loss<Loss>>;
  using loss_verdict = detail::loss_verdict<Loss>;  // the trainer tells its sentence
  using optimizer = Optimizer;
  using metrics = Metrics;
  using precision = Precision;
  using value_type = typename Precision::value_type;

  /// The loss is one more item: the tape ends with it.
  using items = branch<typename Network::items, loss>;
};

/// What a batch of the program has for each input and each output of its network.
template <class Program>
inline constexpr end_sizes ends_of_program = {.inputs = {Program::network::input_shape.size()},
                                              .outputs = {Program::network::output_shape.size()}};

/// What a step needs to know of the program without its types: a constant.
template <class Program>
inline constexpr const auto& layout_of_program = layout_of<typename Program::network::items>;

}  // namespace strata
