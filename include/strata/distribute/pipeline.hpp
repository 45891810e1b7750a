// pipeline: the layers of one network on several groups of threads, which compute different micro-batches at the same time.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/cpu/engine/split_engine.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/program/stages/pipelined.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/synchronous/synchronous.hpp>
#include <utility>

namespace strata {

/// `pipeline<balanced<4>, micro_batches<8>, one_forward_one_backward>{}`: the network is cut into four stages, a batch into eight
/// micro-batches, and each stage is computed by a thread of its own. Cut: balanced<N> or stages<counts of layers...>. Schedule:
/// gpipe, one_forward_one_backward or interleaved<V>. compute_options::threads is the number of threads of each place: as many
/// micro-batches are computed beside each other. The results are those of one_device with as many leaves, bit for bit. With S
/// places and M micro-batches a place is idle for (S - 1) / (M + S - 1) of the time, if stages take equally long. Throws
/// strata::error for a batch that micro-batches do not divide.
template <class Cut = detail::nothing, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward,
          class Backend = default_backend>
struct pipeline {
  using backend = split_backend<Backend, pipelined<Cut, MicroBatches, Schedule>>;
  static constexpr auto name = "pipeline";
  compute_options options{};

  template <class Program>
  using executor = synchronous_executor<Program, backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};

template <class Given, const reason& Why, class MicroBatches, class Schedule, class Backend>
struct pipeline<detail::refused_arguments<Given, Why>, MicroBatches, Schedule, Backend> : detail::refusing<one_device<>> {
  static_assert(sizeof(detail::diagnosed<wrong_argument<Given, detail::because<Why>>>()));
  using detail::refusing<one_device<>>::refusing;
  explicit pipeline(const compute_options&) : detail::refusing<one_device<>>(0) {}
};
template <class... Given>
pipeline(Given...)
    -> pipeline<detail::refused_arguments<type_list<Given...>, the_parts_of_a_pipeline_are_template_arguments_in_angle_brackets>>;
pipeline(compute_options)
    -> pipeline<detail::refused_arguments<compute_options, the_parts_of_a_pipeline_are_template_arguments_in_angle_brackets>>;

}  // namespace strata
