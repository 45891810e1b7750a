// Dense networks on one core: whole training steps through the executor, and the three products of single layers, as shares
// of the FMA peak measured in the same process. Only the multiplications of the direct algorithm count.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "machine.hpp"
#include "networks/architectures.hpp"
#include "support/options.hpp"

namespace {

using namespace strata;
using namespace strata::core;
using bench::best_time;

struct settings {
  std::string only;
  int threads = 1, leaves = 0, micro_batch = 0;
};

bool wanted(const settings& s, const std::string& name) { return s.only.empty() || name.find(s.only) != std::string::npos; }

int calls_for(double flop) { return std::max(1, int(2e-3 / (flop / bench::fma_peak()))); }

double uniform(std::uint64_t stream, std::size_t i) { return philox{stream}.uniform(i); }

/// FLOP of a training step: forward and both gradients of each layer; the first layer has no input gradient.
template <class Network, class Loss, int Batch>
void step(const char* name, const settings& s) {
  const std::string title = std::string(name) + ", batch " + std::to_string(Batch);
  if (!wanted(s, title)) return;
  using P = program<Network, Loss, adam, type_list<>>;
  synchronous_executor<P, cpu> executor(adam{}, 1, {.threads = s.threads, .leaves = s.leaves, .micro_batch = s.micro_batch});
  executor.prepare(Batch, purpose::training);
  constexpr std::size_t in = std::size_t(Network::input_shape.size()), out = std::size_t(Network::output_shape.size()),
                        batches = 8;
  const auto x = bench::aligned_array<float>(Batch * in * batches), targets = bench::aligned_array<float>(Batch * out * batches);
  std::vector<std::int32_t> labels(Batch * batches);
  // As many zeros as MNIST has; some inputs are zero in all samples, where Adam's moments become denormal.
  for (std::size_t i = 0; i < Batch * in * batches; ++i) x[i] = i % in % 8 == 0 ? 0 : std::max(0.f, float(uniform(1, i) * 5 - 4));
  for (std::size_t i = 0; i < Batch * out * batches; ++i) targets[i] = float(uniform(2, i));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(uniform(3, i) * double(out));
  std::size_t at = 0;
  const auto run = [&] {
    samples<float> batch{x.get() + Batch * in * at, Batch};
    if constexpr (Loss::labels == label_kind::sparse)
      batch.truths[0].labels = labels.data() + Batch * at;
    else
      batch.truths[0].targets = targets.get() + Batch * out * at;
    executor.train_step(batch);
    at = (at + 1) % batches;
  };
  const long first = layout_of<typename Network::items>.slots[0].what.extents.size();
  const double flop = 2. * Batch * double(3 * multiply_adds_of<Network> - first);
  const int calls = calls_for(flop + 5e4);
  const double seconds = best_time(60, calls, run);
  std::printf("%-42s %10.2f us  %9.0f samples/s  %5.1f %%\n", title.c_str(), seconds * 1e6, Batch / seconds,
              100 * flop / seconds / bench::fma_peak() / s.threads);
  std::fflush(stdout);
}

template <class Network, class Loss, int... Batch>
void steps(const char* name, const settings& s) {
  (step<Network, Loss, Batch>(name, s), ...);
}

/// Forward, weight gradient and input gradient of one layer.
template <int K, int N, class Activation>
void row_of_layer(const settings& s, std::initializer_list<int> counts) {
  constexpr dense_settings S{N};
  using Op = std::conditional_t<std::is_same_v<Activation, linear>, affine<S>, fused<affine<S>, Activation>>;
  using kernel = strata::core::kernel<cpu, Op, precision::f32, shape{K}>;
  const std::string name = std::to_string(K) + " x " + std::to_string(N);
  if (!wanted(s, name)) return;
  std::map<std::string, std::string> lines;
  std::printf("%-16s", name.c_str());
  for (const int count : counts) {
    const std::size_t n = std::size_t(count);
    const auto x = bench::aligned_array<float>(n * K), y = bench::aligned_array<float>(n * N),
               dx = bench::aligned_array<float>(n * K), dy = bench::aligned_array<float>(n * N),
               w = bench::aligned_array<float>(K * N), b = bench::aligned_array<float>(N),
               dw = bench::aligned_array<float>(K * N), db = bench::aligned_array<float>(N),
               derived = bench::aligned_array<float>(strata::core::traits_of_kernel<kernel>.derived),
               saved = bench::aligned_array<float>(n * strata::core::traits_of_kernel<kernel>.saved),
               scratch = bench::aligned_array<float>(strata::core::traits_of_kernel<kernel>.scratch +
                                                     n * strata::core::traits_of_kernel<kernel>.scratch_per_sample);
    for (std::size_t i = 0; i < n * K; ++i) x[i] = float(uniform(1, i));
    for (std::size_t i = 0; i < n * N; ++i) dy[i] = float(uniform(2, i) - 0.5);
    for (std::size_t i = 0; i < std::size_t(K * N); ++i) w[i] = float(uniform(3, i) - 0.5);
    operands<float> o;
    o.count = count, o.x[0] = x.get(), o.y = y.get(), o.dy = dy.get(), o.w[0] = w.get(), o.w[1] = b.get();
    o.derived = derived.get(), o.saved = saved.get(), o.scratch = scratch.get();
    if constexpr (requires { &kernel::derive; }) kernel::derive(o.w, derived.get());
    kernel::forward(o);
    operands<float> weights = o, input = o;
    weights.dw[0] = dw.get(), weights.dw[1] = db.get();
    input.dx[0] = dx.get();
    const double flop = 2. * K * N * count;
    const auto share = [&](const auto& f) { return 100 * flop / bench::fma_peak() / best_time(40, calls_for(flop), f); };
    const double stores = share([&] { kernel::backward(weights); });
    weights.adds_dw = true;
    std::printf(" | %3d: %3.0f %3.0f %3.0f %3.0f", count, share([&] { kernel::forward(o); }), stores,
                share([&] { kernel::backward(weights); }), share([&] { kernel::backward(input); }));
    std::fflush(stdout);
  }
  std::printf("\n");
}

using scce = sparse_categorical_crossentropy<>;

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::string what;
  strata::bench::options("Steps of dense networks, and dense layers alone.")
      .add("--only", s.only, "the only network or layer")
      .add("--what", what, "the only part", {"networks", "layers"})
      .add("--threads", s.threads, "number of threads")
      .add("--leaves", s.leaves, "parts of a batch; 0: the default")
      .add("--micro-batch", s.micro_batch, "samples at a time; 0: the default")
      .smoke("--only 64")
      .parse(argc, argv);
  const bool networks = what != "layers", layers = what != "networks";
  std::printf("FMA peak of a core: %.1f GFLOP/s\n", bench::fma_peak() * 1e-9);
  if (networks) {
    steps<bench::mlp_64_64, scce, 1, 8, 64, 256>("784-64-64-10", s);
    steps<bench::mlp_128, scce, 1, 16, 64, 256>("784-128-10", s);
    steps<bench::mlp_512_512, scce, 1, 32, 128, 512>("784-512-512-10", s);
    steps<bench::wide_mlp, scce, 32, 256>("1024-2048-2048-100", s);
    steps<bench::autoencoder, mean_squared_error, 64, 256>("784-256-32-256-784", s);
    steps<bench::autoencoder, binary_crossentropy<>, 64>("784-256-32-256-784, binary_crossentropy", s);
  }
  if (layers) {
    std::printf("%% of the peak: samples: forward, weight gradient stored, added, input gradient\n");
    row_of_layer<784, 64, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<784, 128, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<64, 64, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<64, 10, linear>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<128, 10, linear>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<512, 10, linear>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<512, 512, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<784, 512, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<1600, 64, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<1024, 2048, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<2048, 2048, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<2048, 100, linear>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<784, 256, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<32, 256, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<256, 32, relu>(s, {1, 8, 16, 32, 64, 128});
    row_of_layer<101, 37, relu>(s, {1, 7, 13, 37, 64, 128});
  }
}
