// What others have measured, and the machines on which they did.
#pragma once
#include <cmath>

#include "cost_model.hpp"

namespace strata::bench {

/// 8 to a node. 312 TFLOP/s, 80 GB at 2,039 GB/s, NVLink 3: 300 GB/s in each direction (NVIDIA's data sheet, 2021); 8 cards of
/// 200 Gbit/s to a node ([M21], 5.1).
inline constexpr machine a100{"A100 80 GB", 312e12, 2039e9, 80e9, 8, {300e9, 5e-6}, {25e9, 10e-6}};
/// 16 to a DGX-2. 125 TFLOP/s, 32 GB at 900 GB/s, NVLink 2: 150 GB/s in each direction; 800 Gbit/s to a node ([R20], 10.1).
inline constexpr machine v100{"V100 32 GB", 125e12, 900e9, 32e9, 16, {150e9, 5e-6}, {6.25e9, 10e-6}};
/// 275 TFLOP/s, 32 GiB at 1,200 GB/s, 6 links of 50 GB/s, two of them along an axis (Jouppi et al. 2023,
/// https://arxiv.org/abs/2304.01433). A pod is one node here.
inline constexpr machine tpu_v4{"TPU v4", 275e12, 1200e9, 34e9, 4096, {100e9, 1e-6}, {100e9, 1e-6}};

struct measurement {
  const char* source;
  const char* name;
  const machine* on;
  transformer network;
  mesh by;  // micro_batch 0: not published, the model takes the one with the shortest step that fits
  double batch;
  enum { tflops, seconds, utilisation } what;  // TFLOP/s of a device, seconds of a step, or MFU in percent
  double value;
  bool fitted = false;  // used to fit efficiency
};

namespace detail {
/// [M21] does not say how many stages a place has: 3 or 2 where they divide its layers.
constexpr int stages_of_place(int layers, int pipeline) {
  if (pipeline == 1) return 1;
  const int own = layers / pipeline;
  return own % 3 == 0 ? 3 : own % 2 == 0 ? 2 : 1;
}
constexpr measurement megatron(const char* name, int layers, int hidden, int heads, int tensor, int pipeline, int devices,
                               int batch, double tflops, bool fitted = false) {
  return {"M21, table 1",
          name,
          &a100,
          {double(layers), double(hidden), double(heads)},
          {.data = devices / tensor / pipeline,
           .pipeline = pipeline,
           .tensor = tensor,
           .stages_of_place = stages_of_place(layers, pipeline),
           .micro_batch = 0},
          double(batch),
          measurement::tflops,
          tflops,
          fitted};
}
constexpr measurement zero_3(const char* name, int layers, int hidden, int heads, int devices, int batch, int micro_batch,
                             double tflops, bool fitted = false) {
  return {"M21, table 2: ZeRO-3",
          name,
          &a100,
          {double(layers), double(hidden), double(heads)},
          {.data = devices, .zero = 3, .micro_batch = micro_batch},
          double(batch),
          measurement::tflops,
          tflops,
          fitted};
}
constexpr measurement korthikanti(const char* name, int layers, int hidden, int heads, int pipeline, int stages, int batch,
                                  bool all, double seconds) {
  return {all ? "K22, table 5: all again" : "K22, table 5: attention",
          name,
          &a100,
          {double(layers), double(hidden), double(heads)},
          {.pipeline = pipeline,
           .tensor = 8,
           .stages_of_place = stages,
           .micro_batch = pipeline == 1 ? 4 : 1,
           .computed_again = all ? mesh::all : mesh::attention,
           .sequence_parallel = !all},
          double(batch),
          measurement::seconds,
          seconds};
}
constexpr measurement turing(const char* name, int data, double seconds) {
  return {
      "MT-NLG, 2.4",        name,   &a100, {105, 20480, 128}, {.data = data, .pipeline = 35, .tensor = 8, .micro_batch = 1}, 1920,
      measurement::seconds, seconds};
}
}  // namespace detail

/// MT-NLG: Smith et al., https://arxiv.org/abs/2201.11990. PaLM: Chowdhery et al., https://arxiv.org/abs/2204.02311, 4.1: two
/// pods of 3,072 chips, each 12 x 256. ZeRO: [R20], 10.2 and appendix; whether its 38 TFLOP/s count what is computed again is not
/// said.
inline constexpr measurement published[] = {
    detail::megatron("1.7 billion", 24, 2304, 24, 1, 1, 32, 512, 137, true),
    detail::megatron("3.6 billion", 30, 3072, 32, 2, 1, 64, 512, 138),
    detail::megatron("7.5 billion", 36, 4096, 32, 4, 1, 128, 512, 142),
    detail::megatron("18.4 billion", 40, 6144, 48, 8, 1, 256, 1024, 135, true),
    detail::megatron("39.1 billion", 48, 8192, 64, 8, 2, 512, 1536, 138),
    detail::megatron("76.1 billion", 60, 10240, 80, 8, 4, 1024, 1792, 140, true),
    detail::megatron("145.6 billion", 80, 12288, 96, 8, 8, 1536, 2304, 148),
    detail::megatron("310.1 billion", 96, 16384, 128, 8, 16, 1920, 2160, 155),
    detail::megatron("529.6 billion", 105, 20480, 128, 8, 35, 2520, 2520, 163, true),
    detail::megatron("1,008 billion", 128, 25600, 160, 8, 64, 3072, 3072, 163),
    detail::zero_3("174.6 billion", 96, 12288, 96, 384, 1536, 4, 144, true),
    detail::zero_3("174.6 billion", 96, 12288, 96, 768, 1536, 2, 88),
    detail::zero_3("174.6 billion", 96, 12288, 96, 1536, 1536, 1, 44),
    detail::zero_3("529.6 billion", 105, 20480, 128, 640, 2560, 4, 138),
    detail::zero_3("529.6 billion", 105, 20480, 128, 1120, 2240, 2, 98),
    detail::zero_3("529.6 billion", 105, 20480, 128, 2240, 2240, 1, 48),
    detail::korthikanti("22 billion", 48, 6144, 64, 1, 1, 4, true, 1.42),
    detail::korthikanti("22 billion", 48, 6144, 64, 1, 1, 4, false, 1.10),
    detail::korthikanti("175 billion", 96, 12288, 96, 8, 3, 64, true, 18.13),
    detail::korthikanti("175 billion", 96, 12288, 96, 8, 3, 64, false, 13.75),
    detail::korthikanti("530 billion", 105, 20480, 128, 35, 3, 280, true, 49.05),
    detail::korthikanti("530 billion", 105, 20480, 128, 35, 3, 280, false, 37.83),
    detail::korthikanti("1,000 billion", 128, 25600, 160, 64, 1, 512, true, 94.42),
    detail::korthikanti("1,000 billion", 128, 25600, 160, 64, 1, 512, false, 71.49),
    detail::turing("530 billion", 8, 60.1),
    detail::turing("530 billion", 10, 50.2),
    detail::turing("530 billion", 12, 44.4),
    {"PaLM, 4.1",
     "540 billion",
     &tpu_v4,
     {118, 18432, 48, 2048, 256000, 12288, 256, 73728, 3, 1},
     {.data = 512, .tensor = 12, .zero = 3, .micro_batch = 4},
     2048,
     measurement::utilisation,
     46.2},
    {"R20, 10.2",
     "100 billion",
     &v100,
     {125, 8192, 64, 1024, 50257},
     {.data = 25, .tensor = 16, .zero = 2, .micro_batch = 32, .divides_checkpoints = true},
     800,
     measurement::tflops,
     38},
};

/// With the micro-batch that was published, or else with that of 1, 2, 4 and 8 that fits and has the shortest step.
inline prediction predicted(const measurement& m, const efficiency& e) {
  if (m.by.micro_batch > 0) return predict(m.network, m.batch, m.by, *m.on, e);
  prediction best;
  for (mesh by = m.by; const int size : {1, 2, 4, 8}) {
    by.micro_batch = size;
    const double micro_batches = m.batch / by.data / size;
    if (micro_batches < 1 || micro_batches != std::floor(micro_batches)) continue;
    const prediction now = predict(m.network, m.batch, by, *m.on, e);
    if (best.step == 0 || (now.memory <= m.on->memory && now.step < best.step)) best = now;
  }
  return best;
}
inline double value(const measurement& m, const prediction& p) {
  return m.what == measurement::tflops ? p.achieved / 1e12 : m.what == measurement::seconds ? p.step : 100 * p.utilisation;
}
/// How much faster than measured, as a share: positive where the model promises too much.
inline double error(const measurement& m, const efficiency& e) {
  const double ratio = value(m, predicted(m, e)) / m.value;
  return (m.what == measurement::seconds ? 1 / ratio : ratio) - 1;
}

}  // namespace strata::bench
