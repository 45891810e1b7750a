// Which stage computes which layer: by the devices in the network's type, or by cuts that balance work.
#pragma once
#include <array>
#include <cstddef>
#include <strata/concepts/device.hpp>
#include <strata/network/sequential.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/timetable.hpp>

namespace strata {

/// A backend whose programs are split into stages. The kernels are those of Base. A Split has
///   `table`                  the timetable
///   `stage_of_node<Items>`   for each node of the tape its stage
///   `verdict<Program>`       its `type` is no_complaint, or the sentence why the program cannot be split
///   `place`                  what it calls a place in print_plan, such as "device"
template <class Base, class Split>
struct split_backend {
  static constexpr auto name = Base::name;
  using base = Base;
  using device = device_of<Base>;
  using split = Split;
};

// The words of the sentence. It is never defined.
template <class Layer, class Why>
struct cannot_be_split;

inline constexpr reason batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it{
    "batch_norm needs statistics of the whole batch before the next layer begins, but devices compute micro-batches: use "
    "layer_norm, or frozen<batch_norm<>>"};

namespace detail {
/// A view lies where its input is. A loss, and what is computed together with it, lies where the operation before it is.
template <int N>
constexpr void keep_together(const tape<N>& t, std::array<int, std::size_t(N)>& stage_of) {
  if (!t.well_shaped()) return;
  const auto follow = [&](int i) { stage_of[std::size_t(i)] = stage_of[std::size_t(t.nodes[i].input[0])]; };
  for (int i = 1; i < N; ++i)
    if (!t.nodes[i].is_input() && (t.nodes[i].operation->is_view || t.nodes[i].operation->is_loss)) follow(i);
}

/// The first node that needs statistics of the whole batch, which no place has while micro-batches are on their way; -1: none.
template <int N>
constexpr int first_on_whole_batch(const tape<N>& t) {
  if (t.well_shaped())
    for (int i = 0; i < N; ++i)
      if (t.nodes[i].operation->whole_batch) return i;
  return -1;
}
template <class Program, int Node = first_on_whole_batch(tape_of<typename Program::items>)>
struct split_verdict {
  using type = cannot_be_split<by_layer<typename at_t<Node, node_types_of<typename Program::items>>::layer>,
                               because<batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it>>;
};
template <class Program>
struct split_verdict<Program, -1> {
  using type = no_complaint;
};
}  // namespace detail

/// Each device of `on` is a stage; micro-batches come one at a time.
template <int Devices>
struct by_device {
  static constexpr const auto& table = one_at_a_time<Devices>;
  static constexpr auto place = "device";
  template <class Program>
  using verdict = detail::split_verdict<Program>;

  template <class Items>
  static constexpr auto stage_of_node = [] {
    constexpr const auto& t = tape_of<Items>;
    std::array<int, std::size_t(t.size)> stage_of{};
    for (int i = 0; i < t.size; ++i) stage_of[std::size_t(i)] = t.nodes[i].device > 0 ? t.nodes[i].device : 0;
    detail::keep_together(t, stage_of);
    return stage_of;
  }();
};

}  // namespace strata
