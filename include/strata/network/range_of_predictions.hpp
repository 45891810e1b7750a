// A check that the values a network predicts are those that its loss takes.
#pragma once
#include <strata/network/sequential.hpp>

namespace strata {

namespace core {
// The words of the diagnostic. None is ever defined.
template <class Layer>
struct the_network_ends_with;
template <class Loss>
struct the_loss_is;
template <class End, class Loss, class Why>
struct prediction_mismatch;
}  // namespace core

namespace reasons {
inline constexpr reason the_loss_takes_probabilities_end_with_softmax_or_write_from_logits_or_allow_it_by_activation_linear{
    "the loss takes probabilities of classes: end with softmax, give the loss the option from_logits, or put activation<linear> "
    "last if the predictions are right as they are"};
inline constexpr reason the_loss_takes_probabilities_end_with_sigmoid_or_write_from_logits_or_allow_it_by_activation_linear{
    "the loss takes probabilities: end with sigmoid, give the loss the option from_logits, or put activation<linear> last if the "
    "predictions are right as they are"};
inline constexpr reason from_logits_applies_the_activation_again_leave_out_either_or_allow_it_by_activation_linear{
    "a loss with from_logits applies softmax or sigmoid itself: leave out the network's, or from_logits, or put "
    "activation<linear> last if it should be applied twice"};
inline constexpr reason softmax_of_one_unit_is_always_1_use_sigmoid_or_allow_it_by_activation_linear{
    "the softmax of one unit is always 1: use sigmoid, or put activation<linear> last if it should be so"};
}  // namespace reasons

namespace detail {
/// The reason why a loss does not fit the predictions of a network; null if no problem is known.
struct range_complaint {
  int last = 0;  // the node that produces the values
  const reason* why = nullptr;
  int output = 0;
};

template <int N>
constexpr range_complaint complaint_about_range(const tape<N>& t) {
  const tape_ends ends = ends_of(t);
  for (int k = 0; k < ends.output_count; ++k) {
    int last = t.nodes[ends.losses[k]].input[0];
    while (!t.nodes[last].is_input() && t.nodes[last].operation->traits.makes == value_range::those_of_its_input)
      last = t.nodes[last].input[0];
    if (t.nodes[last].is_input()) continue;
    const value_range made = t.nodes[last].operation->traits.makes, taken = t.nodes[ends.losses[k]].operation->traits.takes;
    const bool probabilities = made == value_range::from_0_to_1 || made == value_range::distribution;
    if (made == value_range::distribution && t.nodes[last].out.last() == 1)
      return {last, &reasons::softmax_of_one_unit_is_always_1_use_sigmoid_or_allow_it_by_activation_linear, k};
    if (made == value_range::real && taken == value_range::distribution)
      return {last, &reasons::the_loss_takes_probabilities_end_with_softmax_or_write_from_logits_or_allow_it_by_activation_linear,
              k};
    if (made == value_range::real && taken == value_range::from_0_to_1)
      return {last, &reasons::the_loss_takes_probabilities_end_with_sigmoid_or_write_from_logits_or_allow_it_by_activation_linear,
              k};
    if (probabilities && taken == value_range::real)
      return {last, &reasons::from_logits_applies_the_activation_again_leave_out_either_or_allow_it_by_activation_linear, k};
  }
  return {};
}

/// no_complaint, or the diagnostic about a layer of Items and the loss after it. Losses: a type_list in the order of the tape.
template <class Items, class Losses>
struct range_verdict {
  static constexpr range_complaint found = complaint_about_range(tape_of<Items>);
  static auto sentence() {
    if constexpr (found.last == 0)
      return std::type_identity<no_complaint>{};
    else
      return std::type_identity<prediction_mismatch<the_network_ends_with<typename at_t<found.last, node_types_of<Items>>::layer>,
                                                    the_loss_is<at_t<found.output, Losses>>, because<*found.why>>>{};
  }
  using type = typename decltype(sentence())::type;
};
}  // namespace detail

}  // namespace strata
