// Layers of one network on several GPUs: `placed{gpu(0), gpu(1)}` and `gpu_pipeline<balanced<2>, micro_batches<4>>{}`.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <strata/cuda/cuda.hpp>
#include <strata/cuda/engine/split_engine.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/distribute/placed.hpp>
#include <utility>
#include <vector>

namespace strata {

namespace core {
/// `Count` GPUs as devices of `on_device`: what `placed{gpu(0), gpu(1)}` deduces.
template <int Count>
struct gpu_places {
  static constexpr int count = Count;
};
}  // namespace core

namespace detail {
/// Whether they are GPUs, and at most one cuda_options, which comes last.
template <class... Given>
inline constexpr bool are_gpus_then_options = sizeof...(Given) == 0;
template <>
inline constexpr bool are_gpus_then_options<cuda_options> = true;
template <class... More>
inline constexpr bool are_gpus_then_options<gpu, More...> = are_gpus_then_options<More...>;
}  // namespace detail

/// `placed{gpu(0), gpu(1)}`: device k of `on_device` is the GPU of argument k. Each GPU keeps the parameters, slots, gradients
/// and activations of its layers only; what it reads of another GPU is copied between them. The bits are those of
/// one_device{gpu(0)} for the same network without `on_device`. cuda_options may follow; their `devices` are ignored. A network
/// with a device that has no argument does not compile; a GPU that this machine lacks, or that is named twice, is a
/// strata_error.
template <int Count>
struct placed<core::gpu_places<Count>, core::cuda> {
  using division = core::pipelines<1, core::by_device<Count>, core::cuda>;
  using backend = typename division::backend;
  static constexpr auto name = "placed";
  cuda_options options{};

  template <class... Given>
    requires detail::are_gpus_then_options<Given...>
  explicit placed(const Given&... given) {
    std::vector<int> indices;
    const auto take = [&](const auto& each) {
      if constexpr (requires { each.index; }) {
        if (std::ranges::count(indices, each.index) > 0) throw_error({"placed: gpu(", each.index, ") is listed twice"});
        indices.push_back(each.index);
      } else {
        options = each;
      }
    };
    (take(given), ...);
    options.devices = indices;
  }

  template <class Program>
  using executor = typename division::template in_threads<Program>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};
template <class... More>
  requires detail::are_gpus_then_options<More...>
placed(gpu, More...) -> placed<core::gpu_places<1 + (0 + ... + int(std::same_as<More, gpu>))>, core::cuda>;

/// `gpu_pipeline<balanced<4>, micro_batches<8>>{}` is a pipeline on the first four GPUs of this machine, {gpus({2, 3, 0, 1})} on
/// these. A place keeps the parameters, slots, gradients and activations of its stages only. A micro-batch is one or several
/// whole leaves of a batch, and the bits are those of one_device{gpu(0)}, in mixed_bf16 where no library computes. Throws
/// strata_error if this machine has fewer GPUs, and for a batch with fewer leaves than micro-batches.
template <class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward>
using gpu_pipeline = pipeline<Cut, MicroBatches, Schedule, core::cuda>;

namespace core {
/// A pipeline whose places are GPUs.
template <class Split>
struct in_threads<pipelines<1, Split, cuda>> {
  using division = pipelines<1, Split, cuda>;
  using backend = typename division::backend;
  static constexpr auto name = division::name;
  gpus devices{};
  cuda_options options{};  // `devices` of these is unused

  template <class Program>
  using executor = typename division::template in_threads<Program>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.one_for_each_of(backend::split::table.places, options)};
  }
};
}  // namespace core

}  // namespace strata
