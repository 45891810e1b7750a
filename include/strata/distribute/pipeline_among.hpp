// pipeline_among: the layers of one network on several processes, which compute different micro-batches at the same time.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/program/stages/by_device.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/synchronous/stage_executor.hpp>
#include <utility>

namespace strata {

/// `pipeline_among<C, balanced<4>, micro_batches<8>>{processes}`: pipeline, where each place is a process, on this or other
/// machines. C is any communicator; each process passes its own end, and all read the same batches. A process computes its stages
/// with one thread, and keeps their parameters, slots, gradients and activations only; between two epochs each has all
/// parameters. process_memory_of says how many bytes it needs. The results are those of one_device with as many leaves, bit for
/// bit. The trainer's constructor throws strata::error if there are not as many processes as places, or if they have different
/// programs, stages or timetables.
template <class C, class Cut = detail::nothing, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = default_backend>
struct pipeline_among {
  using backend = split_among<Backend, pipelined<Cut, MicroBatches, Schedule>, C>;
  static constexpr auto name = "pipeline_among";
  C processes;
  compute_options options{};  // threads: how many threads update, evaluate and predict in each process

  template <class Program>
  using executor = stage_executor<Program, backend, C>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes};
  }
};

/// Of what is no communicator.
template <class C, class Cut, class MicroBatches, class Schedule, class Backend>
  requires(!communicator<C>)
struct pipeline_among<C, Cut, MicroBatches, Schedule, Backend> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<typename detail::communicator_verdict<C>::type>()));
  using detail::refusing<one_device<>>::refusing;
};
inline constexpr reason write_pipeline_among_with_communicator_cut_and_micro_batches_in_angle_brackets{
    "the parts of a pipeline are template arguments: pipeline_among<communicator, balanced<2>, micro_batches<8>>{processes}"};
template <class Given, const reason& Why, class Cut, class MicroBatches, class Schedule, class Backend>
struct pipeline_among<detail::refused_arguments<Given, Why>, Cut, MicroBatches, Schedule, Backend>
    : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
};
template <class... Given>
pipeline_among(Given...)
    -> pipeline_among<detail::refused_arguments<type_list<Given...>,
                                                write_pipeline_among_with_communicator_cut_and_micro_batches_in_angle_brackets>,
                      void>;

/// placed, where each device is a process: device k is process k.
template <communicator C, int Devices, class Backend = default_backend>
struct placed_among {
  using backend = split_among<Backend, by_device<Devices>, C>;
  static constexpr auto name = "placed_among";
  static constexpr int device_count = Devices;
  C processes;
  compute_options options{};

  template <class Program>
  using executor = stage_executor<Program, backend, C>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options, processes};
  }
};

}  // namespace strata
