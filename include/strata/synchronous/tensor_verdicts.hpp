// Diagnostics about programs that cannot be divided among ranks with a part of the layers each.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/network/layout_verdict.hpp>
#include <strata/network/network_of_rank.hpp>
#include <strata/network/tape.hpp>
#include <strata/synchronous/pipelines.hpp>
#include <type_traits>

namespace strata {

namespace reasons {
inline constexpr reason layers_are_divided_among_at_least_one_rank{"layers are divided among at least one rank"};
inline constexpr reason fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch{
    "a rank that has a part of the layers keeps the activations of a micro-batch: leave out fits_in, and set a smaller "
    "micro_batch"};
}  // namespace reasons

namespace core {
// The parts of the diagnostics. None is ever defined.
template <class Loss, class Why>
struct loss_cannot_be_divided;
template <class Metric, class Why>
struct metric_cannot_be_divided;
template <class Optimizer, class Why>
struct optimizer_cannot_be_divided;
}  // namespace core
namespace reasons {
inline constexpr reason it_keeps_means_of_whole_rows_and_columns_which_no_rank_has{
    "the optimizer keeps means of whole rows and columns, which no rank has: use another one, such as adam or lamb"};
inline constexpr reason by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax{
    "with by_classes, the loss must be a categorical crossentropy, with from_logits if the network ends without softmax"};
inline constexpr reason by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do{
    "with by_classes, a metric must have measure_place, as accuracy and top_k_categorical_accuracy do"};
}  // namespace reasons

namespace detail {
/// True if a loss compares classes with logits, or with a softmax of them.
template <class Loss>
inline constexpr bool is_class_crossentropy = false;
template <class... Options>
inline constexpr bool is_class_crossentropy<sparse_categorical_crossentropy<Options...>> = true;
template <class... Options>
inline constexpr bool is_class_crossentropy<categorical_crossentropy<Options...>> = true;

template <class Loss, class Network>
constexpr bool fits_divided_classes() {
  constexpr const auto& t = tape_of<typename Network::items>;
  if constexpr (is_class_crossentropy<Loss>)
    return Loss::settings.from_logits == (t.nodes[t.size - 1].operation != &info_of<softmax>);
  else
    return false;
}
/// The first metric that needs all predictions of a sample; void: there is none.
template <class Metrics>
struct metric_of_all_classes {
  using type = void;
};
template <class First, class... Rest>
struct metric_of_all_classes<type_list<First, Rest...>>
    : std::conditional_t<measures_places<First>, metric_of_all_classes<type_list<Rest...>>, std::type_identity<First>> {};

/// no_complaint, or why ranks that have a part of the classes each cannot compute the loss or a metric.
template <class Program, class Map, int Ranks>
struct classes_verdict {
  static auto sentence() {
    using network = typename Program::network;
    using unfit = typename metric_of_all_classes<typename Program::metrics>::type;
    if constexpr (classes_of_rank_in<typename network_of_rank<network, Map, Ranks>::items> == 0)
      return std::type_identity<no_complaint>{};
    else if constexpr (!fits_divided_classes<typename Program::loss, network>())
      return std::type_identity<loss_cannot_be_divided<
          typename Program::loss,
          because<reasons::
                      by_classes_the_loss_is_a_categorical_crossentropy_with_from_logits_if_the_network_ends_without_softmax>>>{};
    else if constexpr (!std::is_void_v<unfit>)
      return std::type_identity<metric_cannot_be_divided<
          unfit, because<reasons::by_classes_a_metric_has_measure_place_as_accuracy_and_top_k_categorical_accuracy_do>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

/// no_complaint, or why a program cannot be divided.
template <class Program, class Map, int Ranks, int Groups, class Backend>
struct tensor_verdict {
  static auto sentence() {
    if constexpr (Ranks < 1)
      return std::type_identity<
          wrong_argument<among_ranks<Ranks>, because<reasons::layers_are_divided_among_at_least_one_rank>>>{};
    else if constexpr (Groups < 1)
      return std::type_identity<wrong_argument<data_parallel<Groups>, because<reasons::data_parallel_has_at_least_one_group>>>{};
    else if constexpr (bounds_activations<Backend>)
      return std::type_identity<
          wrong_argument<Backend, because<reasons::fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch>>>{};
    else if constexpr (!std::is_same_v<typename layout_verdict<typename Program::network, Map, Ranks>::type, no_complaint>)
      return layout_verdict<typename Program::network, Map, Ranks>{};
    else if constexpr (traits_of_optimizer<typename Program::optimizer>.needs_whole_matrices)
      return std::type_identity<optimizer_cannot_be_divided<
          typename Program::optimizer, because<reasons::it_keeps_means_of_whole_rows_and_columns_which_no_rank_has>>>{};
    else
      return classes_verdict<Program, Map, Ranks>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

}  // namespace strata
