// The kernels of the reference CNN and of a small dense network, as shares of the FMA peak measured in the same process.
// "share" counts the multiplications of the plain algorithm (for sparse gradients: of the living windows), so that Winograd
// can exceed 1.
#include <benchmark/benchmark.h>

#include <strata/base/precision.hpp>
#include <strata/cpu/conv_pool.hpp>
#include <strata/cpu/dense.hpp>

#include <algorithm>
#include <ctime>
#include <memory>
#include <new>
#include <string>

namespace {

using namespace strata;
using P = precision::f32;

/// Independent FMA chains, enough for a latency of four cycles on two units.
[[gnu::noinline]] float fma_chains(int rounds) {
  constexpr int chains = 12;
  simd::vec<float> sum[chains], x = simd::broadcast(1.0001f), y = simd::broadcast(0.9999f), total{};
  simd::keep(x);
  simd::keep(y);
  simd::unroll<chains>([&](auto c) STRATA_INLINE { sum[c] = simd::broadcast(float(c)); });
  for (int k = 0; k < rounds; ++k)
    simd::unroll<chains>([&](auto c) STRATA_INLINE {
      sum[c] = sum[c] * x + y;
      simd::keep(sum[c]);
    });
  simd::unroll<chains>([&](auto c) STRATA_INLINE { total += sum[c]; });
  return total[0];
}

/// FLOP per second of processor time; the best of several tries, since the machine may be busy.
double measured_peak() {
  constexpr int rounds = 100'000, tries = 100;
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    const std::clock_t start = std::clock();
    benchmark::DoNotOptimize(fma_chains(rounds));
    best = std::max(best, 2. * rounds * 12 * simd::lanes<float> * CLOCKS_PER_SEC / double(std::clock() - start));
  }
  return best;
}
double peak() {
  static const double value = measured_peak();
  return value;
}

struct numbers {
  std::unique_ptr<float[], void (*)(float*)> data;
  explicit numbers(int n, std::uint64_t stream = 0, double scale = 1, double shift = 0)
      : data(static_cast<float*>(::operator new(sizeof(float) * std::size_t(n + 16), std::align_val_t(64))),
             [](float* p) { ::operator delete(p, std::align_val_t(64)); }) {
    for (int i = 0; i < n; ++i) data[std::size_t(i)] = float((philox{stream}.uniform(std::uint64_t(i)) * 2 - 1) * scale + shift);
  }
  operator float*() const { return data.get(); }
};

/// One micro-batch of a layer.
template <class K, class Layer, shape In, shape Out>
struct layer_data {
  static constexpr auto owned = parameters_of<Layer>(In);
  int count;
  numbers x, y{count * Out.size()}, w, b, dw{owned[0].extents.size()}, db{owned[1].extents.size()}, dy, dx{count * In.size()};
  numbers saved{count * K::saved}, scratch{K::scratch + count * K::scratch_per_sample}, derived{K::derived};
  operands<float> o;

  layer_data(int samples, double weight, double bias)
      : count(samples), x(count * In.size(), 1, 0.5, 0.5), w(owned[0].extents.size(), 2, weight),
        b(owned[1].extents.size(), 3, 0.1, bias), dy(count * Out.size(), 4) {
    o.count = count, o.x[0] = x, o.y = y, o.w[0] = w, o.w[1] = b, o.dy = dy, o.dx[0] = dx, o.dw[0] = dw, o.dw[1] = db;
    o.saved = saved, o.scratch = scratch, o.derived = derived;
    if constexpr (requires { &K::derive; }) K::derive(o.w, derived);
    K::forward(o);
  }
};

/// Runs f and reports its share of the peak and the time per sample.
template <class F>
void measure(benchmark::State& state, int count, double flop_per_sample, F&& f) {
  for (auto _ : state) {
    f();
    benchmark::ClobberMemory();
  }
  const double samples = double(state.iterations()) * count;
  state.counters["share"] = benchmark::Counter(samples * flop_per_sample / peak(), benchmark::Counter::kIsRate);
  state.counters["us/sample"] = benchmark::Counter(samples * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

constexpr pool_settings pool{2, 2};

template <conv_settings S, shape In>
void convolution_layer(const char* name, bool wants_dx, double bias) {
  using K = kernel<cpu, fused<convolution<S>, relu, max_pooling<pool>>, P, In>;
  constexpr shape Out = max_pooling<pool>::output_shape(convolution<S>::output_shape(In).value).value;
  const auto data = std::make_shared<layer_data<K, convolution<S>, In, Out>>(16, 0.2, bias);
  const double taps = double(S.kernel_height * S.kernel_width * In[2]);
  double alive = 0;
  for (int n = 0; n < data->count; ++n)
    for (int i = 0; i < Out.size(); ++i) alive += K::winners(data->o, n)[i] < simd::dead;
  const double dense = 8 * taps * Out.size(), sparse = 2 * taps * alive / data->count;
  const auto add = [&](const std::string& part, double flop, auto change, auto run) {
    benchmark::RegisterBenchmark((name + part).c_str(), [=](benchmark::State& state) {
      operands<float> o = data->o;
      change(o);
      measure(state, o.count, flop, [&] { run(o); });
    });
  };
  const auto backward = [](const operands<float>& o) { K::backward(o); };
  add("/forward", dense, [](operands<float>&) {}, [](const operands<float>& o) { K::forward(o); });
  add("/weight_gradient", sparse, [](operands<float>& o) { o.dx[0] = nullptr, o.adds_dw = true; }, backward);
  if (wants_dx) add("/input_gradient", sparse, [](operands<float>& o) { o.dw[0] = o.dw[1] = nullptr; }, backward);
  add("/derive", 0, [](operands<float>&) {}, [data](const operands<float>& o) { K::derive(o.w, data->derived); });
}

template <int K_, int N, class Activation>
void dense_layer(const std::string& name, int count) {
  constexpr dense_settings S{N};
  constexpr shape In{K_}, Out{N};
  using Op = std::conditional_t<std::is_same_v<Activation, linear>, affine<S>, fused<affine<S>, Activation>>;
  using K = kernel<cpu, Op, P, In>;
  const auto data = std::make_shared<layer_data<K, affine<S>, In, Out>>(count, 0.1, 0);
  const auto add = [&](const std::string& part, auto change, auto run) {
    benchmark::RegisterBenchmark((name + part + "/" + std::to_string(count)).c_str(), [=](benchmark::State& state) {
      operands<float> o = data->o;
      change(o);
      measure(state, o.count, 2. * K_ * N, [&] { run(o); });
    });
  };
  const auto backward = [](const operands<float>& o) { K::backward(o); };
  add("/forward", [](operands<float>&) {}, [](const operands<float>& o) { K::forward(o); });
  add("/weight_gradient", [](operands<float>& o) { o.dx[0] = nullptr, o.adds_dw = true; }, backward);
  add("/input_gradient", [](operands<float>& o) { o.dw[0] = o.dw[1] = nullptr; }, backward);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("FMA peak, GFLOP/s", std::to_string(peak() * 1e-9));
  convolution_layer<conv_settings{32, 3, 3}, shape{28, 28, 1}>("cnn/conv2d_28x28x1_32", false, 0);
  convolution_layer<conv_settings{64, 3, 3}, shape{13, 13, 32}>("cnn/conv2d_13x13x32_64", true, -0.7);
  for (const int count : {16, 64}) {
    dense_layer<1600, 64, relu>("cnn/dense_1600_64", count);
    dense_layer<784, 64, relu>("mlp/dense_784_64", count);
    dense_layer<64, 64, relu>("mlp/dense_64_64", count);
    dense_layer<64, 10, linear>("mlp/dense_64_10", count);
  }
  benchmark::RunSpecifiedBenchmarks();
}
