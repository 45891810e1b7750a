// Networks cut into stages that follow each other, with the timetable of a schedule.
#pragma once
#include <array>
#include <cstddef>
#include <strata/program/stages/cut_layers.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/timetable.hpp>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics about pipelines. None is ever defined.
template <class Cut, class Network, class Why>
struct wrong_cut;
template <int Count>
struct which_has_layers;
}  // namespace core

namespace reasons {
inline constexpr reason each_stage_needs_a_layer_that_computes{"each stage of a pipeline needs a layer that computes"};
inline constexpr reason there_are_more_stages_than_layers_that_compute{"there are more stages than layers that compute"};
inline constexpr reason the_layers_of_all_stages_add_up_to_those_of_the_network_without_input{
    "the numbers of layers of all stages must add up to that of the network, without the input"};
inline constexpr reason the_stages_of_a_place_divide_the_number_of_stages{
    "with interleaved<V> each place has V stages: the number of stages is a multiple of V"};
inline constexpr reason interleaved_needs_a_multiple_of_the_number_of_places_as_micro_batches{
    "the micro-batches of interleaved<V> are a multiple of the number of places, which is the number of stages divided by V"};

inline constexpr reason a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule{
    "a pipeline has a cut, then micro-batches, then a schedule: pipeline<balanced<2>, micro_batches<8>, gpipe>{}"};
inline constexpr reason a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place{
    "a pipeline has at least one stage, one micro-batch and one stage at a place"};
inline constexpr reason the_parts_of_a_pipeline_are_template_arguments_in_angle_brackets{
    "the parts of a pipeline are template arguments, in angle brackets: pipeline<balanced<2>, micro_batches<8>>{}"};
}  // namespace reasons

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
}  // namespace detail

namespace core {
/// A pipeline with wrong parts, which only has the diagnostic.
template <class Cut, class MicroBatches, class Schedule>
struct pipelined {
  template <class Program>
  struct verdict {
    using type = wrong_argument<
        type_list<Cut, MicroBatches, Schedule>,
        detail::because<(detail::parts_of_pipeline<Cut, MicroBatches, Schedule>
                             ? reasons::a_pipeline_has_at_least_one_stage_one_micro_batch_and_one_stage_at_a_place
                             : reasons::a_pipeline_has_a_cut_such_as_balanced_2_then_micro_batches_then_a_schedule)>>;
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
        return std::type_identity<wrong_cut<Cut, which_has_layers<computing>,
                                            detail::because<reasons::there_are_more_stages_than_layers_that_compute>>>{};
      else if constexpr (!Cut::template has_all_layers<items>)
        return std::type_identity<wrong_cut<
            Cut, network, detail::because<reasons::the_layers_of_all_stages_add_up_to_those_of_the_network_without_input>>>{};
      else if constexpr (!has_layers_in_each<items>())
        return std::type_identity<wrong_cut<Cut, network, detail::because<reasons::each_stage_needs_a_layer_that_computes>>>{};
      else if constexpr (!has_equal_places)
        return std::type_identity<wrong_schedule<Schedule, with_stages<stage_count>,
                                                 detail::because<reasons::the_stages_of_a_place_divide_the_number_of_stages>>>{};
      else if constexpr (!fits_micro_batches)
        return std::type_identity<
            wrong_schedule<Schedule, MicroBatches,
                           detail::because<reasons::interleaved_needs_a_multiple_of_the_number_of_places_as_micro_batches>>>{};
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
}  // namespace core

}  // namespace strata
