// Convolutions on one core: forward, weight gradient and input gradient, as shares of the FMA peak measured in the same
// process. Only the multiplications of the direct algorithm count, so Winograd can exceed 100 %.
#include <algorithm>
#include <cstdio>
#include <string>

#include <strata/base/precision.hpp>
#include <strata/base/random.hpp>
#include <strata/cpu/convolution/conv2d.hpp>
#include <strata/cpu/convolution/conv_pool.hpp>

#include "machine.hpp"
#include "support/options.hpp"

namespace {

using namespace strata;
using namespace strata::core;
using P = precision::f32;

std::string only;

void fill(float* p, int n, std::uint64_t stream, double low, double high) {
  for (int i = 0; i < n; ++i) p[i] = float(low + (high - low) * philox{stream}.uniform(std::uint64_t(i)));
}

/// One micro-batch through one kernel; Op is the convolution, K the kernel of the chain that begins with it.
template <class K, class Op, shape In, shape Out>
void measure(const std::string& name, int count, bool wants_dx, double bias) {
  if (name.find(only) == std::string::npos) return;
  constexpr auto owned = parameters_of<Op>(In);
  constexpr int w_size = owned[0].extents.size(), filters = Op::output_shape(In).value[2];
  constexpr shape conv = Op::output_shape(In).value;
  const auto array = [](int n) { return bench::aligned_array<float>(std::size_t(n)); };
  const auto x = array(count * In.size()), y = array(count * Out.size()), dx = array(count * In.size()),
             dy = array(count * Out.size()), w = array(w_size), dw = array(w_size), b = array(filters), db = array(filters),
             saved = array(count * std::max(1, traits_of_kernel<K>.saved)),
             derived = array(std::max(1, traits_of_kernel<K>.derived)),
             scratch = array(traits_of_kernel<K>.scratch + count * traits_of_kernel<K>.scratch_per_sample);
  fill(x.get(), count * In.size(), 1, 0, 1);
  fill(w.get(), w_size, 2, -0.2, 0.2);
  fill(b.get(), filters, 3, bias - 0.1, bias + 0.1);
  fill(dy.get(), count * Out.size(), 4, -1, 1);
  operands<float> o;
  o.count = count, o.x[0] = x.get(), o.y = y.get(), o.w[0] = w.get(), o.dy = dy.get(), o.dx[0] = dx.get(), o.dw[0] = dw.get();
  if constexpr (owned.size() > 1) o.w[1] = b.get(), o.dw[1] = db.get();
  o.saved = saved.get(), o.scratch = scratch.get(), o.derived = derived.get();
  const auto derive = [&] {
    if constexpr (requires { &K::derive; }) K::derive(o.w, derived.get());
  };
  derive();
  K::forward(o);
  operands<float> weights = o, input = o;
  weights.dx[0] = nullptr, weights.adds_dw = true;
  input.dw[0] = input.dw[1] = nullptr;

  const double flop = 2. * conv.size() * (w_size / filters) * count, seconds = std::max(2e-4, flop / bench::fma_peak() * 2);
  std::printf("%-52s", name.c_str());
  const auto part = [&](auto&& f) {
    const double once = bench::best_time(2, 1, f), best = bench::best_time(20, std::max(1, int(seconds / once)), f);
    std::printf(" %9.2f %5.0f %%", best / count * 1e6, 100 * flop / best / bench::fma_peak());
  };
  part([&] { K::forward(o); });
  part([&] { K::backward(weights); });
  if (wants_dx)
    part([&] { K::backward(input); });
  else
    std::printf("%18s", "");
  const double once = bench::best_time(2, 1, derive);
  std::printf(" %9.2f\n", bench::best_time(10, std::max(1, int(1e-4 / (once + 1e-7))), derive) * 1e6);
  std::fflush(stdout);
}

std::string title(const char* net, const conv_settings& s, const shape& in, int count) {
  std::string t = std::string(net) + " " + std::to_string(in[0]) + "x" + std::to_string(in[1]) + "x" + std::to_string(in[2]) +
                  " " + std::to_string(s.kernel_height) + "x" + std::to_string(s.kernel_width) + " -> " +
                  std::to_string(s.filters);
  if (s.same) t += " same";
  if (s.stride_height > 1) t += " stride " + std::to_string(s.stride_height);
  if (s.groups > 1) t += " groups " + std::to_string(s.groups);
  return t + " b" + std::to_string(count);
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }
constexpr conv_settings settings(int filters, int kernel, int stride = 1, bool same = true, int groups = 1) {
  return {filters, kernel, kernel, stride, stride, 1, 1, groups, same};
}

template <conv_settings S, shape In, class Activation = linear>
void alone(const char* net, int count = 16, bool wants_dx = true) {
  using Op = convolution<S>;
  constexpr shape Out = Op::output_shape(In).value;
  if constexpr (std::is_same_v<Activation, linear>)
    measure<kernel<cpu, Op, P, In>, Op, In, Out>(title(net, S, In, count), count, wants_dx, 0);
  else
    measure<kernel<cpu, fused<Op, Activation>, P, In>, Op, In, Out>(title(net, S, In, count) + " " + Activation::name, count,
                                                                    wants_dx, 0);
}

constexpr pool_settings pool{2, 2};
/// Convolution + relu + max pooling. `bias` sets how many windows have a gradient.
template <conv_settings S, shape In>
void pooled(const char* net, double bias, bool wants_dx = true, int count = 16) {
  using Op = convolution<S>;
  constexpr shape Out = max_pooling<pool>::output_shape(Op::output_shape(In).value).value;
  measure<kernel<cpu, fused<Op, relu, max_pooling<pool>>, P, In>, Op, In, Out>(
      title(net, S, In, count) + (bias < -0.5 ? " pooled, half alive" : " pooled"), count, wants_dx, bias);
}

}  // namespace

int main(int argc, char** argv) {
  strata::bench::options("Convolutions, alone and with relu and max pooling.")
      .add("filter", only, "run only names that contain this")
      .smoke("1x1")
      .parse(argc, argv);
  std::printf("FMA peak %.0f GFLOP/s\n%-52s %17s %17s %17s %9s\n", bench::fma_peak() * 1e-9, "us per sample, share of the peak",
              "forward", "weight gradient", "input gradient", "derive us");
  alone<settings(16, 3), image(32, 32, 3), relu>("resnet", 4, false);
  alone<settings(16, 3), image(32, 32, 16)>("resnet", 4);
  alone<settings(32, 3, 2), image(32, 32, 16)>("resnet", 4);
  alone<settings(32, 3), image(16, 16, 32)>("resnet", 4);
  alone<settings(64, 3, 2), image(16, 16, 32)>("resnet", 4);
  alone<settings(64, 3), image(8, 8, 64)>("resnet", 4);
  alone<settings(32, 1, 2), image(32, 32, 16)>("resnet", 4);
  alone<settings(64, 1, 2), image(16, 16, 32)>("resnet", 4);

  alone<settings(64, 3), image(32, 32, 3), relu>("vgg", 4, false);
  alone<settings(64, 3), image(32, 32, 64), relu>("vgg", 4);
  alone<settings(128, 3), image(16, 16, 64), relu>("vgg", 4);
  alone<settings(128, 3), image(16, 16, 128), relu>("vgg", 4);
  alone<settings(256, 3), image(8, 8, 128), relu>("vgg", 16);
  alone<settings(512, 3), image(4, 4, 512), relu>("vgg", 16);
  alone<settings(512, 3), image(2, 2, 512), relu>("vgg", 32);

  alone<settings(6, 5), image(28, 28, 1), tanh_activation>("lenet", 16, false);
  alone<settings(16, 5, 1, false), image(14, 14, 6), tanh_activation>("lenet");

  alone<settings(64, 3, 1, true, 64), image(16, 16, 64), relu6>("mobilenet", 4);
  alone<settings(64, 3, 2, true, 64), image(16, 16, 64), relu6>("mobilenet", 4);
  alone<settings(128, 1), image(16, 16, 64), relu6>("mobilenet", 4);
  alone<settings(256, 1), image(4, 4, 256)>("mobilenet", 4);
  alone<settings(32, 3, 2), image(32, 32, 3)>("mobilenet", 4, false);
  alone<settings(40, 5, 1, true, 40), image(16, 16, 40)>("efficientnet", 4);
  alone<settings(64, 3, 1, true, 32), image(16, 16, 32)>("depth multiplier 2", 4);

  alone<settings(64, 3, 1, true, 4), image(16, 16, 64)>("groups", 4);
  alone<settings(64, 3, 1, true, 16), image(16, 16, 64)>("groups", 4);
  alone<settings(128, 3, 2, true, 4), image(16, 16, 64)>("groups", 4);
  alone<settings(12, 3, 1, true, 4), image(16, 16, 12)>("groups", 4);

  alone<settings(32, 7, 2), image(32, 32, 3), relu>("first layer", 16, false);
  alone<settings(32, 5, 2), image(32, 32, 3), relu>("first layer", 16, false);
  alone<settings(17, 3), image(15, 15, 17)>("odd");
  alone<settings(3, 3), image(15, 13, 17)>("odd");
  alone<settings(17, 3, 2, false), image(15, 13, 3)>("odd");
  alone<settings(64, 3, 1, false), image(15, 13, 17)>("odd");
  alone<settings(1, 3), image(16, 16, 64)>("odd");
  alone<settings(64, 3), image(16, 16, 1)>("odd");
  alone<settings(8, 3), image(28, 28, 8)>("odd");
  alone<settings(3, 5, 2), image(31, 31, 3)>("odd");
  alone<settings(64, 5), image(8, 8, 64)>("5x5");
  alone<settings(64, 1), image(7, 7, 17)>("odd");
  alone<settings(64, 3), image(8, 8, 64)>("one sample", 1);
  alone<settings(64, 3), image(4, 4, 64)>("one sample", 1);

  pooled<settings(32, 3, 1, false), image(28, 28, 1)>("mnist", 0, false);
  pooled<settings(64, 3, 1, false), image(13, 13, 32)>("mnist", 0);
  pooled<settings(64, 3, 1, false), image(13, 13, 32)>("mnist", -0.7);
  pooled<settings(6, 5), image(28, 28, 1)>("lenet", 0, false);
  pooled<settings(16, 5, 1, false), image(14, 14, 6)>("lenet", 0);
  pooled<settings(32, 3), image(32, 32, 3)>("cifar", 0, false);
  pooled<settings(64, 3), image(32, 32, 64)>("vgg", 0, true, 4);
  pooled<settings(128, 3), image(16, 16, 128)>("vgg", 0, true, 4);
  pooled<settings(128, 3), image(16, 16, 128)>("vgg", -1.5, true, 4);
}
