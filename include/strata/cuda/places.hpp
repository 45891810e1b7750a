// Layers of one network on several GPUs: `placed{gpu(0), gpu(1)}` and `gpu_pipeline<balanced<2>, micro_batches<4>>{}`.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <strata/cuda/cuda.hpp>
#include <strata/cuda/engine/split_engine.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/distribute/placed.hpp>
#include <utility>
#include <vector>

namespace strata {

/// `Count` GPUs as devices of `on`: what `placed{gpu(0), gpu(1)}` deduces.
template <int Count>
struct gpu_places {
  static constexpr int count = Count;
};

namespace detail {
/// Of a pack of gpu and at most one cuda_options, which comes last.
template <class... Given>
inline constexpr bool are_gpus_then_options = false;
template <>
inline constexpr bool are_gpus_then_options<> = true;
template <>
inline constexpr bool are_gpus_then_options<cuda_options> = true;
template <class... More>
inline constexpr bool are_gpus_then_options<gpu, More...> = are_gpus_then_options<More...>;
template <class... More>
inline constexpr bool taken_by_placed<gpu, More...> = are_gpus_then_options<More...>;
}  // namespace detail

/// `placed{gpu(0), gpu(1)}`: device k of `on` is the GPU of argument k. Each keeps the parameters, slots, gradients and
/// activations of its layers only; what one reads of another is copied between GPUs. The bits are those of one_device{gpu(0)} for
/// the same network without `on`. cuda_options may follow, whose `devices` do not count. A network that names a device without an
/// argument does not compile; a GPU that this machine lacks, or that is named twice, is a strata::error.
template <int Count>
struct placed<gpu_places<Count>, cuda> {
  using backend = split_backend<cuda, by_device<Count>>;
  static constexpr auto name = "placed";
  static constexpr int device_count = Count;
  cuda_options options{};

  template <class... Given>
    requires detail::are_gpus_then_options<Given...>
  explicit placed(const Given&... given) {
    std::vector<int> indices;
    const auto take = [&](const auto& each) {
      if constexpr (requires { each.index; })
        indices.push_back(each.index);
      else
        options = each;
    };
    (take(given), ...);
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (indices[i] == indices[j]) throw_error({"placed: gpu(", indices[i], ") is named twice"});
    options.devices = indices;
  }

  template <class Program>
  using executor = synchronous_executor<Program, backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, options};
  }
};
template <class... More>
  requires detail::are_gpus_then_options<More...>
placed(gpu, More...) -> placed<gpu_places<1 + (0 + ... + int(std::same_as<More, gpu>))>, cuda>;

/// A pipeline whose places are GPUs: gpu_pipeline.
template <class Cut, class MicroBatches, class Schedule>
struct pipeline<Cut, MicroBatches, Schedule, cuda> {
  using backend = split_backend<cuda, pipelined<Cut, MicroBatches, Schedule>>;
  static constexpr auto name = "pipeline";
  gpus devices{};
  cuda_options options{};  // `devices` of these does not count

  template <class Program>
  using executor = synchronous_executor<Program, backend>;

  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, devices.one_for_each_of(backend::split::table.places, options)};
  }
};

/// `gpu_pipeline<balanced<4>, micro_batches<8>>{}` is a pipeline on the first four GPUs of this machine, {gpus({2, 3, 0, 1})} on
/// these. A place keeps the parameters, slots, gradients and activations of its stages only. A micro-batch is one or several
/// whole leaves of a batch, and the bits are those of one_device{gpu(0)}, in mixed_bf16 where no library computes. Throws
/// strata::error if this machine has fewer GPUs, and for a batch with fewer leaves than micro-batches.
template <class Cut, class MicroBatches = micro_batches<8>, class Schedule = one_forward_one_backward>
using gpu_pipeline = pipeline<Cut, MicroBatches, Schedule, cuda>;

}  // namespace strata
