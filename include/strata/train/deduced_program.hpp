// The program deduced from the arguments of a trainer, or the diagnostic for wrong arguments.
#pragma once
#include <array>
#include <span>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/network/devices.hpp>
#include <strata/network/graph.hpp>
#include <strata/network/range_of_predictions.hpp>
#include <strata/network/sequential.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/program.hpp>
#include <strata/train/metric_verdict.hpp>
#include <strata/train/predictions.hpp>
#include <strata/train/trainer_extras.hpp>
#include <string>
#include <tuple>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined.
template <class Network, class Why>
struct network_without_input;
template <class Second, class Third, class Why>
struct swapped_arguments;
}  // namespace core

namespace reasons {
inline constexpr reason a_trainer_takes_a_network_an_optimizer_and_a_loss{
    "a trainer takes a network, an optimizer and a loss, in this order"};
inline constexpr reason the_network_of_a_trainer_begins_with_input{
    "the network of a trainer begins with input<extents of one sample...>"};
inline constexpr reason a_trainer_takes_a_network_first_such_as_sequential{
    "a trainer takes a network first: sequential<input<...>, layers...>"};
inline constexpr reason a_trainer_takes_an_optimizer_second_such_as_adam{"a trainer takes an optimizer second, such as adam{}"};
inline constexpr reason a_trainer_takes_a_loss_third_such_as_mean_squared_error{
    "a trainer takes a loss third, such as mean_squared_error{}"};
inline constexpr reason a_trainer_takes_a_graph_of_one_input_and_one_output;
inline constexpr reason a_loss_without_truth_is_that_of_an_output_of_a_graph{
    "a loss without truth is that of an output of a graph: compare<latent>(kl_of_normal{})"};
inline constexpr reason shared_layers_are_trained_by_one_device_and_mirrored_on_processors{
    "shared layers are trained by one_device and mirrored on processors only"};
inline constexpr reason the_optimizer_comes_before_the_loss{"a trainer takes the optimizer before the loss"};
}  // namespace reasons

namespace detail {

/// Replaces a program whose arguments are refused; the trainer emits the diagnostic. Values: how many evaluate returns.
template <class Sentence, class Network, int Values = 1>
struct refused_program {};

/// The number of arguments that are meant as metrics, including invalid ones.
template <class... Extra>
inline constexpr int meant_as_metrics = (0 + ... +
                                         int(metric<Extra> || (named<Extra> && !trainer_extra<Extra> && !has_executor<Extra> &&
                                                               !fit_option<Extra> && !names_backend<Extra>)));

template <class T>
inline constexpr bool is_sequential = false;
template <class... Items>
inline constexpr bool is_sequential<sequential<Items...>> = true;

/// Whether the type has already emitted its own diagnostic, such as a sequential whose layers do not fit.
template <class Network>
concept ill_shaped_network = (is_graph<Network> || requires { typename Network::items; }) && !network<Network>;

template <class T>
concept meant_as_a_loss = requires { T::labels; } || requires { &T::output_shape; };
template <class T>
concept meant_as_an_optimizer = requires(const T& o) { o.learning_rate; } || requires(const T& o) { o.slots(); };

/// The diagnostic for an optimizer: void if nothing is wrong.
template <class Optimizer>
auto sentence_on_optimizer() {
  if constexpr (!optimizer<Optimizer> && !meant_as_an_optimizer<Optimizer>)
    return std::type_identity<wrong_argument<Optimizer, because<reasons::a_trainer_takes_an_optimizer_second_such_as_adam>>>{};
  else if constexpr (!optimizer<Optimizer>)
    return optimizer_verdict<Optimizer>{};
  else
    return std::type_identity<void>{};
}

/// The diagnostic for the first three arguments of a trainer: void if nothing is wrong.
template <class Network, class Optimizer, class Loss>
auto sentence_on_parts() {
  if constexpr (ill_shaped_network<Network>)
    return std::type_identity<no_complaint>{};
  else if constexpr (is_sequential<Network> && !network<Network>)
    return std::type_identity<network_without_input<Network, because<reasons::the_network_of_a_trainer_begins_with_input>>>{};
  else if constexpr (graph_of_several_ends<Network>)
    return std::type_identity<wrong_argument<Network, because<reasons::a_trainer_takes_a_graph_of_one_input_and_one_output>>>{};
  else if constexpr (!network<Network>)
    return std::type_identity<wrong_argument<Network, because<reasons::a_trainer_takes_a_network_first_such_as_sequential>>>{};
  else if constexpr (meant_as_a_loss<Optimizer> && meant_as_an_optimizer<Loss>)
    return std::type_identity<swapped_arguments<Optimizer, Loss, because<reasons::the_optimizer_comes_before_the_loss>>>{};
  else if constexpr (!optimizer<Optimizer>)
    return sentence_on_optimizer<Optimizer>();
  else if constexpr (!loss_function<Loss> && !meant_as_a_loss<Loss>)
    return std::type_identity<wrong_argument<Loss, because<reasons::a_trainer_takes_a_loss_third_such_as_mean_squared_error>>>{};
  else if constexpr (!loss_function<Loss>)
    return loss_verdict<Loss>{};
  else if constexpr (Loss::labels == label_kind::none)
    return std::type_identity<wrong_argument<Loss, because<reasons::a_loss_without_truth_is_that_of_an_output_of_a_graph>>>{};
  else
    return std::type_identity<void>{};
}

/// The first node for which the strategy's backend has no kernel; -1 if there is none, or if the strategy names no backend.
template <class Program, class Strategy>
inline constexpr int lacks_kernel = -1;
template <class Program, class Strategy>
  requires requires { typename Strategy::backend; }
inline constexpr int lacks_kernel<Program, Strategy> = first_without_kernel<Program, typename Strategy::backend>;

template <class Program>
using unfit_metrics = decltype(metrics_unfit_for<Program::loss::labels>(typename Program::metrics{}));
template <class Program>
inline constexpr int predictions_of = int(ends_of_program<Program>.outputs[0]);
template <class Program>
using refused_metrics_of = decltype(metrics_refused_for<predictions_of<Program>>(typename Program::metrics{}));

/// Checks that the strategy has the devices that the network names, and that a strategy that splits programs can split this one.
template <class Program, class Strategy>
struct split_verdict_of {
  using type = no_complaint;
};
template <class Program, class Strategy>
  requires(devices_of<typename Program::network> <= devices_of_strategy<Strategy>) &&
          requires { typename Strategy::backend::split; }
struct split_verdict_of<Program, Strategy> : Strategy::backend::split::template verdict<Program> {};
template <class Program, class Strategy>
  requires(devices_of<typename Program::network> > devices_of_strategy<Strategy>)
struct split_verdict_of<Program, Strategy> {
  using type = missing_device<
      on_device<devices_of<typename Program::network> - 1>,
      because<(names_devices<Strategy> ? reasons::the_strategy_has_no_such_device_give_placed_more_thread_groups_or_gpus
                                       : reasons::the_strategy_has_one_device_use_placed_or_leave_out_on_device)>>;
};

/// The diagnostic of a strategy for a program that it cannot train, `Strategy::verdict<Program>`, or else that of its backend.
template <class Program, class Strategy>
struct verdict_of_strategy {
  using type = no_complaint;
};
template <class Program, class Strategy>
  requires(!requires { typename Strategy::template verdict<Program>; }) && requires { typename Strategy::backend; }
struct verdict_of_strategy<Program, Strategy> : backend_verdict<Program, typename Strategy::backend> {};
template <class Program, class Strategy>
  requires requires { typename Strategy::template verdict<Program>; }
struct verdict_of_strategy<Program, Strategy> : Strategy::template verdict<Program> {};

/// Whether a graph has shared layers and the strategy cannot train them.
template <class Program, class Strategy>
inline constexpr bool shares_weights_elsewhere = [] {
  if constexpr (is_graph<typename Program::network>)
    if constexpr (!requires { requires Strategy::trains_shared; }) return shares_weights<typename Program::items>;
  return false;
}();

/// The diagnostic about predictions and losses, a type_list in the order of the tape, and about the strategy and its backend:
/// void if nothing is wrong.
template <class Program, class Strategy, class Losses>
auto sentence_on_machine() {
  using range = range_verdict<typename Program::items, Losses>;
  if constexpr (shares_weights_elsewhere<Program, Strategy>)
    return std::type_identity<
        wrong_argument<Strategy, because<reasons::shared_layers_are_trained_by_one_device_and_mirrored_on_processors>>>{};
  else if constexpr (range::found.last > 0)
    return range{};
  else if constexpr (!std::is_same_v<typename split_verdict_of<Program, Strategy>::type, no_complaint>)
    return split_verdict_of<Program, Strategy>{};
  else if constexpr (lacks_kernel<Program, Strategy> >= 0)
    return kernel_verdict<Program, typename Strategy::backend, lacks_kernel<Program, Strategy>>{};
  else if constexpr (!std::is_same_v<typename verdict_of_strategy<Program, Strategy>::type, no_complaint>)
    return verdict_of_strategy<Program, Strategy>{};
  else
    return std::type_identity<void>{};
}

/// The diagnostic for the arguments as a whole program.
template <class Program, class Strategy, class... Extra>
auto sentence_on_whole() {
  using refused = filter_t<is_no_trainer_extra, Extra...>;
  using unfit = unfit_metrics<Program>;
  if constexpr (std::is_base_of_v<refused_strategy, Strategy>)
    return std::type_identity<told>{};
  else if constexpr (!std::is_same_v<refused, type_list<>>)
    return extra_verdict<refused>{};
  else if constexpr (!std::is_same_v<unfit, type_list<>>)
    return metric_verdict<Program::loss::labels, unfit>{};
  else if constexpr (!tape_of<typename Program::items>.well_shaped())
    return verdict<typename Program::items>{};
  else if constexpr (!std::is_same_v<refused_metrics_of<Program>, type_list<>>)
    return metric_refusal<predictions_of<Program>, refused_metrics_of<Program>>{};
  else
    return sentence_on_machine<Program, Strategy, type_list<typename Program::loss>>();
}

/// What trainer{arguments...} is.
template <class... Arguments>
struct deduced_program {
  using program = refused_program<
      wrong_argument<type_list<Arguments...>, because<reasons::a_trainer_takes_a_network_an_optimizer_and_a_loss>>, void>;
  using strategy = void;
};
template <class Network, class Optimizer, class Loss, class... Extra>
struct deduced_program<Network, Optimizer, Loss, Extra...> {
 private:
  using extras = sorted_extras<Extra...>;
  static auto find() {
    using first = typename decltype(sentence_on_parts<Network, Optimizer, Loss>())::type;
    constexpr int values = 1 + meant_as_metrics<Extra...>;
    if constexpr (!std::is_void_v<first>) {
      return std::type_identity<refused_program<first, Network, values>>{};
    } else {
      using whole = strata::core::program<Network, Loss, Optimizer, typename extras::metrics, typename extras::precision>;
      using second = typename decltype(sentence_on_whole<whole, typename extras::strategy, Extra...>())::type;
      return std::type_identity<std::conditional_t<std::is_void_v<second>, whole, refused_program<second, Network, values>>>{};
    }
  }
  template <class Program>
  static typename extras::strategy strategy_for(Program*);
  template <class Sentence, int Values>
  static void strategy_for(refused_program<Sentence, Network, Values>*);

 public:
  using program = typename decltype(find())::type;
  using strategy = decltype(strategy_for(static_cast<program*>(nullptr)));
};

/// What is wrong with the losses and metrics of a program. Those of a graph were checked when it was deduced.
template <class Program>
struct losses_verdict {
  using type = no_complaint;
};
template <class Program>
  requires requires { typename Program::loss_verdict; }
struct losses_verdict<Program> {
  using type = first_complaint<typename Program::loss_verdict::type,
                               typename metric_verdict<Program::loss::labels, decltype(metrics_unfit_for<Program::loss::labels>(
                                                                                  typename Program::metrics{}))>::type>;
};

/// What is wrong with trainer<Program, Strategy>, of which not all is found where a trainer deduces it from arguments.
template <class Program, class Strategy>
using trainer_verdict = first_complaint<typename losses_verdict<Program>::type,
                                        typename executor_verdict<typename Strategy::template executor<Program>, Program>::type,
                                        typename strategy_verdict<Strategy, Program>::type>;

/// What predict of a refused trainer returns.
template <class Network>
struct refused_predictions {
  using type = predictions<float, shape{}>;
};
template <network Network>
  requires requires { Network::output_shape; }
struct refused_predictions<Network> {
  using type = predictions<float, Network::output_shape>;
};
template <class... Output>
  requires(sizeof...(Output) > 1)
struct refused_predictions<graph<Output...>> {
  template <class>  // no alias: nvcc would replace it by a type without the pack
  struct of_output {
    using type = predictions<float, shape{}>;
  };
  using type = std::tuple<typename of_output<Output>::type...>;
};
}  // namespace detail

template <class Program, class Strategy>
class trainer;

/// The type of trainer{...} if its arguments are wrong. It emits a single diagnostic and accepts any call, so that no further
/// errors follow.
template <class Network, class Sentence, int Values>
class trainer<detail::refused_program<Sentence, Network, Values>, void> {
  static_assert(detail::diagnosed<Sentence>[0]);

 public:
  using value_type = float;
  using network = Network;

  explicit trainer(const auto&...) {}
  training_history fit(const auto&...) { return {}; }
  bool serve() { return false; }
  detail::evaluated<Values> evaluate(const auto&...) { return {}; }
  typename detail::refused_predictions<Network>::type predict(const auto&...) { return {}; }
  std::array<core::metric_sum, 2> train_step(const auto&...) { return {}; }
  template <class... Inputs>
  auto gradients(const auto&...) {
    if constexpr (sizeof...(Inputs) < 2)
      return predictions<float, shape{}>{};
    else
      return std::tuple<std::conditional_t<true, predictions<float, shape{}>, Inputs>...>{};
  }
  std::span<float> parameters() const { return {}; }
  void set_parameters(const auto&...) {}
  void adapt(const auto&...) {}
  void save_weights(const auto&...) const {}
  void load_weights(const auto&...) {}
  double learning_rate() const { return 0; }
  void set_learning_rate(double) {}
  void reset_optimizer() {}
  void set_trainable(const auto&...) {}
  bool is_trainable(const auto&...) const { return true; }
  template <class Node>
  void set_loss_weight(double) {}
  template <class Node>
  double loss_weight_of() const {
    return 1;
  }
  bool is_chief() const { return true; }
};

namespace detail {
template <class T>
inline constexpr bool is_refused_trainer_v = false;
template <class Program>
inline constexpr bool is_refused_trainer_v<trainer<Program, void>> = true;
// The argument is any type with this property, since print_plan<network>(out) must not look for a conversion of out to
// trainer<network, void>, which would emit its diagnostic.
template <class T>
concept refused_trainer = is_refused_trainer_v<T>;
}  // namespace detail

std::string summary(const detail::refused_trainer auto&) { return {}; }
void print_plan(const detail::refused_trainer auto&, const auto&...) {}

}  // namespace strata
