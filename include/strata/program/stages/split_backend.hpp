// Backends whose programs are split into stages, and which layers cannot be split.
#pragma once
#include <array>
#include <cstddef>
#include <strata/concepts/device.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/network/sequential.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/plan.hpp>

namespace strata {

namespace core {
/// A backend whose programs are split into stages. The kernels are those of Base. A Split has
///   `table`                  the timetable
///   `stage_of_node<Items>`   for each node of the tape its stage
///   `verdict<Program>`       its `type` is no_complaint, or the diagnostic about a program that cannot be split
///   `place`                  the word for a place in print_plan, such as "device"
template <class Base, class Split>
struct split_backend {
  static constexpr auto name = Base::name;
  using base = Base;
  using device = device_of<Base>;
  using split = Split;
};

/// The same where each place is a process.
template <class Base, class Split, class Communicator>
struct split_among : split_backend<Base, Split> {
  using communicator = Communicator;
};

// The words of the diagnostic. It is never defined.
template <class Layer, class Why>
struct cannot_be_split;
}  // namespace core

namespace reasons {
inline constexpr reason batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it{
    "batch_norm needs statistics of the whole batch before the next layer begins, but devices compute micro-batches: use "
    "layer_norm, or frozen<batch_norm<>>"};

inline constexpr reason fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches{
    "fits_in cannot be combined with layers at several places, which keep the activations of their micro-batches: take more "
    "micro-batches"};
}  // namespace reasons

namespace detail {
/// Whether a node lies where its input is: a view, a loss, and the only reader of the operation before it if one kernel may
/// compute both, such as an activation. Apart, they could have other bits than in a program that is not split.
template <int N>
constexpr bool stays_with_input(const tape<N>& t, int i) {
  if (t.nodes[i].is_input()) return false;
  const operation_info& o = *t.nodes[i].operation;
  if (o.traits.is_view || o.is_loss) return true;
  const tape_node& before = t.nodes[i - 1];
  return (o.traits.elementwise || o.traits.over_last_axis || o.traits.shares_kernel) && t.nodes[i].arity == 1 &&
         t.nodes[i].input[0] == i - 1 && before.consumers == 1 && !before.is_input();
}
template <int N>
constexpr void keep_together(const tape<N>& t, std::array<int, std::size_t(N)>& stage_of) {
  if (!t.well_shaped()) return;
  for (int i = 1; i < N; ++i)
    if (stays_with_input(t, i)) stage_of[std::size_t(i)] = stage_of[std::size_t(t.nodes[i].input[0])];
}

/// The first node that needs statistics of the whole batch, which no place has while micro-batches are on their way; -1: none.
template <int N>
constexpr int first_on_whole_batch(const tape<N>& t) {
  if (t.well_shaped())
    for (int i = 0; i < N; ++i)
      if (t.nodes[i].operation->traits.whole_batch) return i;
  return -1;
}
template <class Program, int Node = first_on_whole_batch(tape_of<typename Program::items>)>
struct split_verdict {
  using type = cannot_be_split<by_layer<typename at_t<Node, node_types_of<typename Program::items>>::layer>,
                               because<reasons::batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it>>;
};
template <class Program>
struct split_verdict<Program, -1> {
  using type = no_complaint;
};

/// The budget of fits_in is for the samples of one micro-batch, and a stage has several on their way.
template <class Program, class Backend>
  requires requires { typename Backend::split; } && bounds_activations<typename Backend::base>
struct backend_verdict<Program, Backend> {
  using type = wrong_argument<typename Backend::base,
                              because<reasons::fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches>>;
};
}  // namespace detail

}  // namespace strata
