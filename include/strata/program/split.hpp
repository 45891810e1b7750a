// Which stage computes which layer: by the devices in the network's type, or by cuts that balance work.
#pragma once
#include <array>
#include <cstddef>
#include <strata/concepts/device.hpp>
#include <strata/kernel/segmented.hpp>
#include <strata/network/sequential.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/timetable.hpp>

namespace strata {

namespace detail {
template <class Items, class Map, int Ranks>
struct divided;  // network/layout_map.hpp
}  // namespace detail

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

/// The same where each place is a process.
template <class Base, class Split, class Communicator>
struct split_among : split_backend<Base, Split> {
  using communicator = Communicator;
};

// The words of the sentence. It is never defined.
template <class Layer, class Why>
struct cannot_be_split;

inline constexpr reason batch_norm_needs_the_whole_batch_at_once_use_layer_norm_or_freeze_it{
    "batch_norm needs statistics of the whole batch before the next layer begins, but devices compute micro-batches: use "
    "layer_norm, or frozen<batch_norm<>>"};

namespace detail {
/// Whether a node lies where its input is: a view, a loss, and the only reader of the operation before it if one kernel may
/// compute both, such as an activation. Apart, they could have other bits than in a program that is not split.
template <int N>
constexpr bool stays_with_input(const tape<N>& t, int i) {
  if (t.nodes[i].is_input()) return false;
  const operation_info& o = *t.nodes[i].operation;
  if (o.is_view || o.is_loss) return true;
  const tape_node& before = t.nodes[i - 1];
  return (o.elementwise || o.over_last_axis || o.shares_kernel) && t.nodes[i].arity == 1 && t.nodes[i].input[0] == i - 1 &&
         before.consumers == 1 && !before.is_input();
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

namespace detail {
/// The layers of a program in a row: first nodes and costs. What stands in a sequential, a branch, `frozen` or `on` counts by
/// itself; a join and its branches are one layer.
template <int Max>
struct layer_row {
  int count = 0;
  int first[Max + 1] = {};      // node of each layer, then the end
  double cost[Max + 1] = {};    // of a sample, forward and backward
  double sent[Max + 1] = {};    // if another stage has the next layer
  bool computes[Max + 1] = {};  // false: all of it stays with its input
};

template <class Item>
struct lengths_in_row {
  static constexpr void each(auto&& f) { f(length(typename structure<Item>::types{})); }
};
template <class... Items>
struct lengths_of_items {
  static constexpr void each(auto&& f) { (lengths_in_row<Items>::each(f), ...); }
};
template <class... Items>
struct lengths_in_row<branch<Items...>> : lengths_of_items<Items...> {};
template <class... Items>
struct lengths_in_row<frozen<Items...>> : lengths_of_items<Items...> {};
template <class Device, class... Items>
struct lengths_in_row<on<Device, Items...>> : lengths_of_items<Items...> {};
template <class... Items>
struct lengths_in_row<sequential<Items...>> : lengths_of_items<Items...> {};
template <int... Extents, class... Items>
struct lengths_in_row<sequential<input<Extents...>, Items...>> : lengths_of_items<Items...> {};
template <class Items, class Map, int Ranks>
struct lengths_in_row<divided<Items, Map, Ranks>> : lengths_in_row<Items> {};

/// What a stage takes for a sample, in floating-point operations: a core reads or writes a byte in the time of `per_byte` of
/// them. Activations are written and read forward and backward; weights are read three times for a micro-batch of about 32
/// samples.
inline constexpr double per_byte = 4, samples_of_micro_batch = 32, bytes_of_number = 4;
/// How often they are written or read.
inline constexpr double passes_of_activations = 4, passes_of_weights = 3, passes_of_message = 2;

/// The last item, the loss, belongs to the layer before it.
template <class Items>
constexpr auto layers_in_a_row() {
  constexpr const auto& t = tape_of<Items>;
  constexpr const auto& l = layout_of<Items>;
  layer_row<t.size> row;
  if (!t.well_shaped()) return row;
  int node = 0;
  lengths_in_row<Items>::each([&](int length) {
    if (length > 0 && !t.nodes[node].is_input() && !t.nodes[node].operation->is_loss) row.first[row.count++] = node;
    node += length;
  });
  row.first[row.count] = t.size;
  for (int k = 0; k < row.count; ++k)
    for (int i = row.first[k]; i < row.first[k + 1]; ++i) {
      const tape_node& n = t.nodes[i];
      if (n.operation->is_loss) continue;
      if (!stays_with_input(t, i)) row.computes[k] = true;
      if (n.operation->multiply_adds) row.cost[k] += 6.0 * double(n.operation->multiply_adds(t.in(i)));
      if (n.operation->is_view) continue;
      row.cost[k] += per_byte * bytes_of_number * passes_of_activations * n.out.size();
      row.sent[k] = per_byte * bytes_of_number * passes_of_message * n.out.size();
    }
  for (int s = 0; s < l.count; ++s)
    for (int k = 0; k < row.count; ++k)
      if (row.first[k] <= l.slots[s].node && l.slots[s].node < row.first[k + 1])
        row.cost[k] += per_byte * bytes_of_number * passes_of_weights / samples_of_micro_batch * l.slots[s].what.extents.size();
  return row;
}
template <class Items>
inline constexpr auto layers_of = layers_in_a_row<Items>();

/// Layers [begin[s], begin[s + 1]) are stage s.
template <int Stages>
struct cut {
  int begin[Stages + 1] = {};
};

/// A layer that computes, with those after it that stay with their input, and those before the first one.
template <int Max>
constexpr layer_row<Max> layers_to_cut_at(const layer_row<Max>& all) {
  layer_row<Max> row;
  for (int k = 0; k < all.count; ++k) {
    if (all.computes[k]) {
      row.first[row.count] = row.count == 0 ? 0 : k;  // the number of the layer in `all`
      ++row.count;
    }
    if (row.count == 0) continue;
    row.cost[row.count - 1] += all.cost[k];
    if (all.sent[k] > 0) row.sent[row.count - 1] = all.sent[k];  // not of a view
  }
  row.first[row.count] = all.count;
  return row;
}

/// Each stage takes as many layers as cost `limit` at most, and leaves one for each stage after it. Returns whether all are
/// taken.
template <int Stages, int Max>
constexpr bool cut_within(const layer_row<Max>& row, double limit, cut<Stages>& c) {
  int at = 0;
  for (int s = 0; s < Stages; ++s) {
    c.begin[s] = row.first[at];
    const int last = row.count - (Stages - 1 - s);
    int end = at;
    double cost = 0;
    for (int k = at; k < last && (cost += row.cost[k]) <= limit; ++k)
      if (cost + (k + 1 < row.count ? row.sent[k] : 0) <= limit) end = k + 1;
    if (end == at) return false;
    at = end;
  }
  c.begin[Stages] = row.first[row.count];
  return at == row.count;
}

/// The smallest limit within which stages can be cut, to a thousandth.
template <int Stages, int Max>
constexpr cut<Stages> balanced_cut(const layer_row<Max>& all) {
  const layer_row<Max> row = layers_to_cut_at(all);
  double low = 0, high = 0;
  for (int k = 0; k < row.count; ++k) high += row.cost[k] + row.sent[k];
  cut<Stages> best, tried;
  cut_within(row, high, best);
  while (high - low > 0.001 * high) {
    const double middle = (low + high) / 2;
    if (cut_within(row, middle, tried))
      high = middle, best = tried;
    else
      low = middle;
  }
  return best;
}

/// The layers that compute in stage s.
template <int Stages, int Max>
constexpr int computing_layers(const layer_row<Max>& row, const cut<Stages>& c, int s) {
  int n = 0;
  for (int k = c.begin[s]; k < c.begin[s + 1] && k < row.count; ++k) n += row.computes[k];
  return n;
}
}  // namespace detail

/// Cuts the layers of a network into `Count` stages that take about equally long: the compiler minimises the time of the longest
/// one, which it estimates from the multiply-adds of its layers and the bytes that they read, write and send.
template <int Count>
struct balanced {
  static constexpr int count = Count;

  template <class Items>
  static constexpr auto cut_of = detail::balanced_cut<Count>(detail::layers_of<Items>);
  template <class Items>
  static constexpr bool has_all_layers = true;
};

/// Cuts the layers of a network by hand: the first stage has the first `Counts...[0]` of them after the input, and so on. Layers
/// of an inner `sequential` count one by one; a join with its branches is one layer.
template <int... Counts>
struct stages {
  static constexpr int count = sizeof...(Counts);

  template <class Items>
  static constexpr auto cut_of = [] {
    detail::cut<count> c;
    int at = 0, s = 0;
    ((c.begin[s++] = at, at += Counts), ...);
    c.begin[count] = at;
    return c;
  }();
  template <class Items>
  static constexpr bool has_all_layers = (0 + ... + Counts) == detail::layers_of<Items>.count;
};

// The words of the sentences about pipelines. None is ever defined.
template <class Cut, class Network, class Why>
struct wrong_cut;
template <int Count>
struct which_has_layers;

inline constexpr reason each_stage_needs_a_layer_that_computes{"each stage of a pipeline needs a layer that computes"};
inline constexpr reason there_are_more_stages_than_layers_that_compute{"there are more stages than layers that compute"};
inline constexpr reason the_layers_of_all_stages_add_up_to_those_of_the_network_without_input{
    "the numbers of layers of all stages add up to those of the network, the input not counted"};
inline constexpr reason the_stages_of_a_place_divide_the_number_of_stages{
    "with interleaved<V> each place has V stages: the number of stages is a multiple of V"};
inline constexpr reason interleaved_needs_a_multiple_of_the_number_of_places_as_micro_batches{
    "the micro-batches of interleaved<V> are a multiple of the number of places, which is the number of stages divided by V"};

inline constexpr reason a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule{
    "a pipeline has a cut, then micro-batches, then a schedule: pipeline<balanced<2>, micro_batches<8>, gpipe>{}"};
inline constexpr reason a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place{
    "a pipeline has at least one stage, one micro-batch and one stage at a place"};
inline constexpr reason fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches{
    "fits_in does not go with layers at several places, which keep the activations of their micro-batches: take more "
    "micro-batches"};
inline constexpr reason the_parts_of_a_pipeline_are_template_arguments_in_angle_brackets{
    "the parts of a pipeline are template arguments, in angle brackets: pipeline<balanced<2>, micro_batches<8>>{}"};

namespace detail {
template <class T>
inline constexpr bool is_micro_batches = false;
template <int Count>
inline constexpr bool is_micro_batches<micro_batches<Count>> = true;

template <class Cut, class MicroBatches, class Schedule>
concept parts_of_pipeline = requires {
  Cut::count;
  Cut::template has_all_layers<type_list<>>;
  Schedule::stages_of_a_place;
} && is_micro_batches<MicroBatches>;
template <class Cut, class MicroBatches, class Schedule>
concept possible_parts_of_pipeline = parts_of_pipeline<Cut, MicroBatches, Schedule> && Cut::count >= 1 &&
                                     MicroBatches::count >= 1 && Schedule::stages_of_a_place >= 1;

/// The budget of fits_in is for the samples of one micro-batch, and a stage has several on their way.
template <class Program, class Backend>
  requires requires { typename Backend::split; } && bounds_activations<typename Backend::base>
struct backend_verdict<Program, Backend> {
  using type = wrong_argument<typename Backend::base,
                              because<fits_in_does_not_go_with_layers_at_several_places_which_keep_their_micro_batches>>;
};
}  // namespace detail

/// Of wrong parts: it has the sentence only.
template <class Cut, class MicroBatches, class Schedule>
struct pipelined {
  template <class Program>
  struct verdict {
    using type =
        wrong_argument<type_list<Cut, MicroBatches, Schedule>,
                       detail::because<(detail::parts_of_pipeline<Cut, MicroBatches, Schedule>
                                            ? a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place
                                            : a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule)>>;
  };
};

/// A network cut into stages that follow each other, each at a place of its own, or at that of other stages.
template <class Cut, class MicroBatches, class Schedule>
  requires detail::possible_parts_of_pipeline<Cut, MicroBatches, Schedule>
struct pipelined<Cut, MicroBatches, Schedule> {
  static constexpr int stage_count = Cut::count, stages_of_a_place = Schedule::stages_of_a_place;
  static constexpr bool has_equal_places = stage_count % stages_of_a_place == 0,
                        fits_micro_batches = stages_of_a_place == 1 || !has_equal_places ||
                                             MicroBatches::count % (stage_count / stages_of_a_place) == 0;
  using schedule = Schedule;
  static constexpr auto place = "place";
  static constexpr auto table = [] {
    if constexpr (has_equal_places && fits_micro_batches)
      return Schedule::template table<stage_count, MicroBatches::count>();
    else
      return one_at_a_time<stage_count>;  // the verdict is told
  }();

  template <class Items>
  static constexpr auto stage_of_node = [] {
    constexpr const auto& t = tape_of<Items>;
    constexpr const auto& row = detail::layers_of<Items>;
    constexpr const auto& c = Cut::template cut_of<Items>;
    std::array<int, std::size_t(t.size)> stage_of{};
    for (int s = 0; s < stage_count; ++s)
      for (int k = c.begin[s]; k < c.begin[s + 1] && k < row.count; ++k)
        for (int i = row.first[k]; i < row.first[k + 1]; ++i) stage_of[std::size_t(i)] = s;
    detail::keep_together(t, stage_of);
    return stage_of;
  }();

  template <class Program>
  struct verdict {
    static auto sentence() {
      using items = typename Program::items;
      constexpr const auto& row = detail::layers_of<items>;
      using network = which_has_layers<row.count>;
      using whole_batch = typename detail::split_verdict<Program>::type;
      constexpr int computing = detail::layers_to_cut_at(row).count;
      if constexpr (!std::is_same_v<whole_batch, detail::no_complaint>)
        return std::type_identity<whole_batch>{};
      else if constexpr (stage_count > computing)
        return std::type_identity<
            wrong_cut<Cut, which_has_layers<computing>, detail::because<there_are_more_stages_than_layers_that_compute>>>{};
      else if constexpr (!Cut::template has_all_layers<items>)
        return std::type_identity<
            wrong_cut<Cut, network, detail::because<the_layers_of_all_stages_add_up_to_those_of_the_network_without_input>>>{};
      else if constexpr (!has_layers_in_each<items>())
        return std::type_identity<wrong_cut<Cut, network, detail::because<each_stage_needs_a_layer_that_computes>>>{};
      else if constexpr (!has_equal_places)
        return std::type_identity<wrong_schedule<Schedule, with_stages<stage_count>,
                                                 detail::because<the_stages_of_a_place_divide_the_number_of_stages>>>{};
      else if constexpr (!fits_micro_batches)
        return std::type_identity<wrong_schedule<
            Schedule, MicroBatches, detail::because<interleaved_needs_a_multiple_of_the_number_of_places_as_micro_batches>>>{};
      else
        return std::type_identity<detail::no_complaint>{};
    }
    using type = typename decltype(sentence())::type;
  };

 private:
  template <class Items>
  static constexpr bool has_layers_in_each() {
    for (int s = 0; s < stage_count; ++s)
      if (detail::computing_layers(detail::layers_of<Items>, Cut::template cut_of<Items>, s) == 0) return false;
    return true;
  }
};

}  // namespace strata

// The engine of the CPU: strata/cpu/cpu.hpp.
#define STRATA_SPLITS_PROGRAMS 1
#ifdef STRATA_CPU_SPLIT_ENGINE
#include STRATA_CPU_SPLIT_ENGINE
#endif
