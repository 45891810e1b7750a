// Kernels with little arithmetic per element: batch normalization, joins, activations, pooling, losses, dropout, layer
// normalization, padding. Prints ns per input element for the cpu and the reference backend, and the memory traffic as a
// share of memcpy's over equally many bytes, because memory limits these kernels.
#include <strata/base/arena.hpp>
#include <strata/base/precision.hpp>
#include <strata/cpu/kernels/activations.hpp>
#include <strata/cpu/kernels/batch_norm.hpp>
#include <strata/cpu/kernels/concat.hpp>
#include <strata/cpu/kernels/dropout.hpp>
#include <strata/cpu/kernels/elementwise_join.hpp>
#include <strata/cpu/kernels/layer_norm.hpp>
#include <strata/cpu/kernels/losses.hpp>
#include <strata/cpu/kernels/pooling.hpp>
#include <strata/cpu/kernels/zero_padding2d.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/reference/reference.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

#include "machine.hpp"
#include "support/options.hpp"

namespace {

using namespace strata;
using namespace strata::core;
using P = precision::f32;

std::string filter;

/// Bytes per second, read and written, of a copy of equally many bytes.
double copy_bandwidth(std::size_t bytes) {
  const std::size_t half = bytes / 2 + 64;
  const auto from = bench::aligned_array<char>(half), to = bench::aligned_array<char>(half);
  const int calls = int(std::max<std::size_t>(1, 4'000'000 / half));
  const double seconds = bench::best_time(15, calls, [&] {
    std::memcpy(to.get(), from.get(), half);
    asm volatile("" ::: "memory");
  });
  return 2. * double(half) / seconds;
}

/// One micro-batch for a kernel with `Inputs` inputs of the same shape.
template <class K, class Operation, shape In, shape Out>
struct layer_data {
  using numbers = arena<float>;
  static numbers make(std::size_t n, int stream, double scale = 1, double at = 0) {
    numbers a(n + 16);
    for (std::size_t i = 0; i < n; ++i) a.data()[i] = float((philox{std::uint64_t(stream)}.uniform(i) * 2 - 1) * scale + at);
    return a;
  }
  static constexpr std::size_t samples(int count, int n) { return std::size_t(count) * std::size_t(n); }

  static constexpr auto owned = parameters_of<Operation>(In);
  numbers x, x2, y, dy, dx, dx2, saved, scratch, targets, w[max_parameters], dw[max_parameters];
  std::vector<std::int32_t> labels;
  std::vector<double> statistics, loss;
  operands<float> o;

  explicit layer_data(int count)
      : x(make(samples(count, In.size()), 1, 2)),
        x2(make(samples(count, In.size()), 2)),
        y(make(samples(count, Out.size()), 3, 0.4, 0.5)),
        dy(make(samples(count, Out.size()), 4)),
        dx(make(samples(count, In.size()), 5)),
        dx2(make(samples(count, In.size()), 5)),
        saved(make(samples(count, traits_of_kernel<K>.saved), 6, 0)),
        scratch(make(std::size_t(traits_of_kernel<K>.scratch) + samples(count, traits_of_kernel<K>.scratch_per_sample), 7)),
        targets(make(samples(count, Out.size()), 8, 0.5, 0.5)),
        labels(std::size_t(count), 0),
        statistics(2 * std::size_t(traits_of_kernel<K>.statistics)),
        loss(2) {
    o.count = count, o.total = count;
    o.x[0] = x.data(), o.x[1] = x2.data(), o.y = y.data(), o.dy = dy.data(), o.dx[0] = dx.data(), o.dx[1] = dx2.data();
    for (std::size_t p = 0; p < owned.size(); ++p) {
      w[p] = make(std::size_t(owned[p].extents.size()), 9, 0.5, 1), dw[p] = make(std::size_t(owned[p].extents.size()), 9);
      o.w[p] = w[p].data(), o.dw[p] = owned[p].trainable ? dw[p].data() : nullptr;
    }
    o.saved = saved.data(), o.scratch = scratch.data(), o.statistics = statistics.data();
    o.labels = labels.data(), o.targets = targets.data(), o.loss = loss.data();
  }
};

struct timing {
  double forward = 0, backward = 0;
};

/// Seconds of forward (with collect) and backward (with collect_backward).
template <class K, class Operation, shape In, shape Out>
timing measure(int count) {
  layer_data<K, Operation, In, Out> data(count);
  const operands<float>& o = data.o;
  const int calls = std::max(1, 1'000'000 / (count * In.size()));
  const auto best = [&](auto&& f) {
    return bench::best_time(9, calls, [&] {
      f();
      asm volatile("" ::: "memory");
    });
  };
  timing t;
  t.forward = best([&] {
    if constexpr (requires { &K::collect; }) std::fill(data.statistics.begin(), data.statistics.end(), 0.), K::collect(o);
    K::forward(o);
  });
  t.backward = best([&] {
    if constexpr (requires { &K::collect_backward; }) K::collect_backward(o);
    K::backward(o);
  });
  return t;
}

template <class Operation, shape... In>
constexpr shape shape_behind() {
  const shape in[] = {In...};
  return info_of<Operation>.output_shape(std::span<const shape>(in)).value;
}

/// `Chain`: the operations that the cpu backend fuses; the reference fuses them, too, or computes `Operation` alone. The moves:
/// elements read and written per element of x.
template <class Operation, class Chain, shape In, shape... More>
void layer(const char* name, int count, double forward_moves, double backward_moves) {
  if (std::string_view(name).find(filter) == std::string_view::npos) return;
  constexpr shape Out = shape_behind<Operation, In, More...>();
  using fast = typename find_kernel<cpu, Chain, P, In, More...>::type;
  using alone = typename find_kernel<reference, Operation, P, In, More...>::type;
  using chain = typename find_kernel<reference, Chain, P, In, More...>::type;
  using plain = std::conditional_t<std::is_void_v<chain>, alone, chain>;
  const double n = double(count) * In.size();
  const timing t = measure<fast, Operation, In, Out>(count), before = measure<plain, Operation, In, Out>(count);
  const auto line = [&](const char* part, double moves, double now, double was) {
    const double bytes = n * moves * sizeof(float);
    std::printf("%-34s %-9s %8.3f -> %7.3f ns/number  %6.1fx  %5.0f %% of copy\n", name, part, was / n * 1e9, now / n * 1e9,
                was / now, 100 * bytes / now / copy_bandwidth(std::size_t(bytes)));
  };
  line("forward", forward_moves, t.forward, before.forward);
  line("backward", backward_moves, t.backward, before.backward);
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }

void batch_norms() {
  using B = batch_normalization<batch_norm_settings{}>;
  using fused_relu = fused<B, relu>;
  layer<B, B, shape{128}>("batch_norm/128", 64, 3, 5);
  layer<B, B, image(32, 32, 3)>("batch_norm/32x32x3", 16, 3, 5);
  layer<B, B, image(16, 16, 16)>("batch_norm/16x16x16", 16, 3, 5);
  layer<B, B, image(16, 16, 67)>("batch_norm/16x16x67", 16, 3, 5);
  layer<B, fused_relu, image(32, 32, 16)>("batch_norm+relu/32x32x16", 16, 3, 7);
  layer<B, fused_relu, image(16, 16, 64)>("batch_norm+relu/16x16x64", 16, 3, 7);
  layer<B, fused_relu, image(32, 32, 64)>("batch_norm+relu/32x32x64", 64, 3, 7);
  layer<B, fused_relu, image(4, 4, 512)>("batch_norm+relu/4x4x512", 16, 3, 7);
}

void joins() {
  using sum = sum_of_branches;
  using stack = stack_of_branches;
  layer<sum, sum, image(16, 16, 64), image(16, 16, 64)>("add/16x16x64", 16, 3, 3);
  layer<sum, fused<sum, relu>, image(16, 16, 64), image(16, 16, 64)>("add+relu/16x16x64", 16, 3, 4);
  using product = product_of_branches;
  using largest = largest_of_branches;
  layer<product, product, image(16, 16, 64), image(16, 16, 64)>("multiply/16x16x64", 16, 3, 5);
  layer<largest, largest, image(16, 16, 64), image(16, 16, 64)>("maximum/16x16x64", 16, 3, 5);
  layer<stack, stack, image(16, 16, 64), image(16, 16, 64)>("concat/16x16x64", 16, 4, 4);
  layer<stack, stack, image(16, 16, 3), image(16, 16, 3)>("concat/16x16x3", 16, 4, 4);
}

template <class... A>
void activations_alone(type_list<A...>) {
  (layer<A, A, image(16, 16, 64)>(A::name, 16, 2, 3), ...);
}

void pooling() {
  using max = max_pooling<pool_settings{2, 2}>;
  using wide_max = max_pooling<pool_settings{3, 3, 2, 2, true}>;
  using mean = average_pooling<pool_settings{2, 2}>;
  layer<max, max, image(16, 16, 64)>("max_pool/16x16x64", 16, 1.25, 1.25);
  layer<max, max, image(28, 28, 4)>("max_pool/28x28x4", 16, 1.25, 1.25);
  layer<max, max, image(28, 28, 20)>("max_pool/28x28x20", 16, 1.25, 1.25);
  layer<wide_max, wide_max, image(16, 16, 64)>("max_pool_3/16x16x64", 16, 1.25, 1.25);
  layer<mean, mean, image(16, 16, 64)>("average_pool/16x16x64", 16, 1.25, 1.25);
  layer<global_average_pool2d, global_average_pool2d, image(8, 8, 256)>("global_average_pool/8x8x256", 16, 1, 1);
  layer<global_max_pool2d, global_max_pool2d, image(8, 8, 256)>("global_max_pool/8x8x256", 16, 1, 1);
}

/// Chains that the reference backend fuses as well.
template <class Chain, class L, int N>
void loss(const char* name, int count) {
  layer<L, Chain, shape{N}>(name, count, 3, 3);
}

void losses() {
  layer<softmax, softmax, shape{10}>("softmax/10", 256, 2, 3);
  layer<softmax, softmax, shape{1000}>("softmax/1000", 64, 2, 3);
  loss<mean_squared_error, mean_squared_error, 784>("mean_squared_error/784", 64);
  loss<fused<strata::sigmoid, binary_crossentropy<>>, binary_crossentropy<>, 784>("sigmoid+binary_crossentropy/784", 64);
  loss<fused<softmax, sparse_categorical_crossentropy<>>, sparse_categorical_crossentropy<>, 1000>(
      "softmax+sparse_crossentropy/1000", 64);
  loss<sparse_categorical_crossentropy<from_logits>, sparse_categorical_crossentropy<from_logits>, 10>(
      "sparse_crossentropy_of_logits/10", 256);
}

void others() {
  using drop = dropout<decimal(5, -1)>;
  using norm = layer_normalization<layer_norm_settings{}>;
  using padding = zero_padding<padding_settings{1, 1, 1, 1}>;
  layer<drop, drop, shape{1024}>("dropout/1024", 64, 2.25, 2.25);
  layer<norm, norm, shape{16, 256}>("layer_norm/16x256", 16, 2, 3);
  layer<norm, norm, shape{64, 16}>("layer_norm/64x16", 16, 2, 3);
  layer<padding, padding, image(16, 16, 64)>("zero_padding/16x16x64", 16, 2.27, 2);
  using repeated = up_sampling<up_sampling_settings{2, 2}>;
  using blended = up_sampling<up_sampling_settings{2, 2, true}>;
  layer<repeated, repeated, image(16, 16, 64)>("up_sampling/16x16x64", 16, 5, 5);
  layer<blended, blended, image(16, 16, 64)>("up_sampling_bilinear/16x16x64", 16, 5, 5);
}

}  // namespace

int main(int argc, char** argv) {
  strata::bench::options("Elementwise kernels.").add("filter", filter, "run only names that contain this").parse(argc, argv);
  batch_norms();
  joins();
  activations_alone(
      type_list<relu, leaky_relu<>, elu<>, strata::sigmoid, tanh_activation, softplus, softsign, silu, gelu, gelu_approximate>{});
  pooling();
  losses();
  others();
}
