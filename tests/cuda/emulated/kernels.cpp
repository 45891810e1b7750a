// Each kernel of the CUDA backend against the reference in double precision: forward, and backward leaf by leaf.
// needs: emulated_cuda
#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>
#include <type_traits>
#include <vector>

using namespace strata;
using namespace strata::core;

namespace {

/// Computes several sums, one after the other, in the same shared memory.
template <int Threads>
struct prefix_sums {
  static constexpr int threads = Threads, times = 3;
  struct shared {
    long part[2][threads];
  };
  machine::prefix_sum<long>* to;

  STRATA_DEVICE void operator()(const machine::lane& l, shared& memory) const {
    for (int i = 0; i < times; ++i)
      to[(l.block() * times + i) * threads + l.thread()] =
          machine::prefix_sum_of_block(l, memory.part, l.thread() + i + l.block());
  }
};

/// Checks that the gradient of a table has the bits of a loop that adds up each leaf sample by sample: from zero, and then from
/// the values that are there. The last leaf has no samples. index(i): index i of the batch.
template <class T, int Rows, int Width, int Indices, class F>
void check_gradient_of_table(int count, int capacity, const F& index) {
  using namespace strata::test;
  using P = std::conditional_t<std::is_same_v<T, float>, precision::f32, precision::f64>;
  have_devices(1);
  constexpr std::size_t size = std::size_t(Rows) * Width;
  const int leaves = (count + capacity - 1) / capacity + 1;
  const long stride = long(size) + 3;
  std::vector<double> indices(std::size_t(count) * Indices);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = double(index(int(i)));
  std::vector<double> dy = numbers(10, indices.size() * Width);
  for (double& each : dy) each /= 3;  // doubles whose sums are rounded
  const machine::queue q = cuda_device(0).make_queue();
  const device_array<T> x(q, indices), from(q, dy), dw(q, std::size_t(stride * leaves), T(5));
  operands<T> o;
  o.count = count, o.leaves = {leaves, capacity, stride, 0};
  o.x[0] = x.data(), o.dy = from.data(), o.dw[0] = dw.data();
  std::vector<T> expected = dw.values();
  for (long leaf = 0; leaf < leaves; ++leaf) std::fill_n(expected.begin() + leaf * stride, size, T{});
  for (const bool adds : {false, true}) {
    CAPTURE(adds);
    o.adds_dw = adds;
    kernel<cuda, lookup<embedding_settings{.rows = Rows, .width = Width}>, P, shape{Indices}>::backward(q, o);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      T* const row = expected.data() + long(i) / Indices / capacity * stride + long(indices[i]) * Width;
      for (std::size_t j = 0; j < std::size_t(Width); ++j) row[j] += T(dy[i * Width + j]);
    }
    CHECK(std::ranges::equal(dw.values(), expected));
  }
}

/// Compares leaves of 64 samples and more, for which some layers have other kernels.
template <class P, shape In, class... Ops>
void compare_large_leaves(type_list<Ops...> chain) {
  test::have_devices(1);
  test::compare_kernel<kernel<cuda, typename test::operation_of<Ops...>::type, P, In>, P, In>(
      chain, std::is_same_v<P, precision::f64> ? 1e-11 : 2e-5, {{64, 64}, {67, 65}});
}

}  // namespace

TEST_CASE_TEMPLATE("sums over the threads of a block up to each of them", Code, prefix_sums<1>, prefix_sums<64>,
                   prefix_sums<128>) {
  test::have_devices(1);
  constexpr int blocks = 2;
  const machine::queue q = cuda_device(0).make_queue();
  const test::device_array<machine::prefix_sum<long>> found(q, blocks * Code::times * Code::threads, {-1, -1});
  machine::launch(q, blocks, Code{found.data()});
  const auto sums = found.values();
  std::size_t at = 0;
  for (long block = 0; block < blocks; ++block)
    for (int i = 0; i < Code::times; ++i) {
      const auto up_to = [&](long threads) { return threads * (threads - 1) / 2 + threads * (i + block); };
      for (long t = 0; t < Code::threads; ++t, ++at) {
        CHECK(sums[at].up_to == up_to(t + 1));
        CHECK(sums[at].all == up_to(Code::threads));
      }
    }
}

TEST_CASE_TEMPLATE("elementwise activations", A, relu, relu6, leaky_relu<0.2_r>, elu<>, selu, hard_sigmoid, hard_silu, sigmoid,
                   tanh_activation, softplus, softsign, silu, gelu, gelu_approximate) {
  compare_with_reference<type_list<A>, shape{3, 5, 2}>();
}

TEST_CASE("softmax: rows that are shorter and longer than a block of threads") {
  compare_with_reference<type_list<softmax>, shape{10}>();
  compare_with_reference<type_list<softmax>, shape{3, 2, 50}>();
  compare_with_reference<type_list<softmax>, shape{300}>();
}

TEST_CASE("dense: less than a tile, more than one, without a bias, with an activation") {
  compare_with_reference<type_list<affine<dense_settings{.units = 10}>>, shape{7}>();
  compare_with_reference<type_list<affine<dense_settings{.units = 70, .bias = false}>>, shape{130}>();
  compare_with_reference<type_list<affine<dense_settings{.units = 33}>, relu>, shape{17}>();
  compare_with_reference<type_list<affine<dense_settings{.units = 20}>>, shape{1100}>();
  compare_with_reference<type_list<affine<dense_settings{.units = 5}>, tanh_activation>, shape{64}>();
}

TEST_CASE("products of rounded operands") {
  compare_with_rounded_reference<type_list<affine<dense_settings{.units = 10}>>, shape{130}>();
  compare_with_rounded_reference<type_list<affine<dense_settings{.units = 33}>, relu>, shape{17}>();
  using convolved = convolution<conv_settings{.filters = 4, .kernel_height = 3, .kernel_width = 3}>;
  compare_with_rounded_reference<type_list<convolved>, shape{7, 6, 3}>();
  compare_with_rounded_reference<type_list<convolved, relu, max_pooling<pool_settings{2, 2}>>, shape{8, 7, 3}>();
  compare_with_rounded_reference<type_list<transposed_convolution<transposed_conv_settings{
                                     .filters = 3, .kernel_height = 3, .kernel_width = 2, .bias = false}>>,
                                 shape{4, 5, 2}>();
}

TEST_CASE("convolutions on tensor cores: less than a tile, more than one, padding, strides, parts") {
  // A tile has 64 rows, and 32 or 64 columns. Taps with terms that fill its depth, and with fewer.
  using small = convolution<conv_settings{.filters = 20, .kernel_height = 2, .kernel_width = 3, .bias = false}>;
  compare_with_rounded_reference<type_list<small>, shape{4, 5, 16}>();
  compare_with_rounded_reference<type_list<small, relu>, shape{4, 5, 36}>();
  using large = convolution<conv_settings{.filters = 68, .kernel_height = 3, .kernel_width = 3, .same = true}>;
  compare_with_rounded_reference<type_list<large>, shape{5, 4, 32}>();
  compare_with_rounded_reference<type_list<large, relu, max_pooling<pool_settings{2, 2}>>, shape{5, 4, 32}>();
  compare_with_rounded_reference<
      type_list<convolution<conv_settings{
                    .filters = 32, .kernel_height = 3, .kernel_width = 2, .stride_height = 2, .stride_width = 2, .same = true}>,
                relu>,
      shape{5, 6, 16}>();
  compare_with_rounded_reference<
      type_list<convolution<conv_settings{.filters = 16, .kernel_height = 2, .kernel_width = 2, .dilation_width = 3}>>,
      shape{3, 6, 16}>();
  compare_with_rounded_reference<type_list<transposed_convolution<transposed_conv_settings{.filters = 32,
                                                                                           .kernel_height = 3,
                                                                                           .kernel_width = 2,
                                                                                           .stride_height = 2,
                                                                                           .stride_width = 2,
                                                                                           .same = true,
                                                                                           .bias = false}>,
                                           relu>,
                                 shape{4, 3, 40}>();
}

TEST_CASE("convolutions of large leaves keep images in shared memory: windows, padding, strides, dilations, several planes") {
  using P = precision::mixed_bf16;
  // Forward and the gradient of the input, for images of less than a tile of 32 pixels and of more.
  using plain = convolution<conv_settings{.filters = 32, .kernel_height = 2, .kernel_width = 3}>;
  compare_large_leaves<P, shape{3, 5, 32}>(type_list<plain, relu>{});
  compare_large_leaves<P, shape{6, 7, 32}>(
      type_list<convolution<conv_settings{.filters = 64, .kernel_height = 3, .kernel_width = 3, .same = true, .bias = false}>>{});
  // With pooling; the last row and column are in no window.
  compare_large_leaves<P, shape{7, 7, 64}>(type_list<plain, relu, max_pooling<pool_settings{2, 2}>>{});
  // Only forward: strides of 2, with rows that no window reads.
  compare_large_leaves<P, shape{6, 8, 32}>(
      type_list<convolution<conv_settings{
          .filters = 32, .kernel_height = 2, .kernel_width = 3, .stride_height = 2, .stride_width = 2, .same = true}>>{});
  compare_large_leaves<P, shape{5, 6, 32}>(
      type_list<convolution<conv_settings{.filters = 32, .kernel_height = 2, .kernel_width = 2, .dilation_width = 3}>>{});
  compare_large_leaves<P, shape{3, 4, 32}>(
      type_list<transposed_convolution<transposed_conv_settings{
                    .filters = 32, .kernel_height = 3, .kernel_width = 2, .same = true, .bias = false}>,
                relu>{});
  // Few channels: 9 terms, in runs of odd length, with padding; 27 terms; 50 terms, which are more than 32, with strides.
  using of_a_channel = convolution<conv_settings{.filters = 32, .kernel_height = 3, .kernel_width = 3, .same = true}>;
  compare_large_leaves<P, shape{6, 7, 1}>(type_list<of_a_channel, relu, max_pooling<pool_settings{2, 2}>>{});
  compare_large_leaves<P, shape{6, 5, 3}>(
      type_list<
          convolution<conv_settings{.filters = 64, .kernel_height = 3, .kernel_width = 3, .dilation_height = 2, .bias = false}>,
          relu>{});
  compare_large_leaves<P, shape{7, 8, 2}>(
      type_list<convolution<conv_settings{
          .filters = 32, .kernel_height = 5, .kernel_width = 5, .stride_height = 2, .stride_width = 2, .same = true}>>{});
}

TEST_CASE_TEMPLATE("an infinite pixel is seen by the windows that have it, and by no others", P, precision::tf32,
                   precision::mixed_bf16) {
  using namespace strata::test;
  have_devices(1);
  // On tensor cores. In bfloat16, runs of three terms: a pair, and one by itself.
  constexpr int count = 64, rows = 5, columns = 6, channels = std::is_same_v<P, precision::tf32> ? 16 : 1, filters = 32;
  using convolved = convolution<conv_settings{.filters = filters, .kernel_height = 3, .kernel_width = 3, .bias = false}>;
  std::vector<double> x = numbers(1, count * rows * columns * channels);
  x[(2 * columns + 3) * channels] = std::numeric_limits<double>::infinity();
  const machine::queue q = cuda_device(0).make_queue();
  const device_array<float> from(q, x), w(q, numbers(2, 9 * channels * filters)), y(q, count * 3 * 4 * filters, float(NAN));
  operands<float> o;
  o.count = count, o.leaves = {1, count, 0, 0};
  o.x[0] = from.data(), o.y = y.data(), o.w[0] = w.data();
  kernel<cuda, convolved, P, shape{rows, columns, channels}>::forward(q, o);
  const std::vector<float> all = y.values();
  for (int at = 0; at < count * 3 * 4; ++at) {
    const int row = at / 4 % 3, column = at % 4;
    const bool has_it = at < 12 && row <= 2 && row + 3 > 2 && column <= 3 && column + 3 > 3;
    for (int f = 0; f < filters; ++f) {
      const float found = all[std::size_t(at * filters + f)];
      CHECK((has_it ? std::isinf(found) : std::isfinite(found)));
    }
  }
}

TEST_CASE_TEMPLATE("pooled convolutions with few terms in a window: large leaves add up the gradients of winners", P,
                   precision::f32, precision::f64, precision::tf32, precision::mixed_bf16) {
  using pooled = max_pooling<pool_settings{2, 2}>;
  compare_large_leaves<P, shape{6, 7, 1}>(
      type_list<convolution<conv_settings{.filters = 36, .kernel_height = 3, .kernel_width = 3, .same = true}>, relu, pooled>{});
  compare_large_leaves<P, shape{7, 9, 3}>(
      type_list<convolution<conv_settings{.filters = 8, .kernel_height = 2, .kernel_width = 3, .stride_width = 2, .bias = false}>,
                relu6, pooled>{});
  if constexpr (std::is_same_v<P, precision::f32>) {  // scratch memory has room for the parts of four leaves, not of all six
    using wide = convolution<conv_settings{.filters = 512, .kernel_height = 1, .kernel_width = 1}>;
    test::compare_kernel<kernel<cuda, test::operation_of<wide, relu, pooled>::type, P, shape{2, 2, 1}>, P, shape{2, 2, 1}>(
        type_list<wide, relu, pooled>{}, 2e-5, {{321, 64}});
  }
  if constexpr (std::is_same_v<P, precision::f32> || std::is_same_v<P, precision::f64>)
    compare_large_leaves<P, shape{6, 6, 2}>(
        type_list<convolution<conv_settings{.filters = 5, .kernel_height = 3, .kernel_width = 3}>, tanh_activation, pooled>{});
}

TEST_CASE("dense layers on tensor cores: leaves of 64 samples, and smaller ones, which have another kernel") {
  using namespace strata::test;
  have_devices(1);
  const auto compare = []<class P, shape In, class... Ops>(type_list<Ops...> chain) {
    compare_kernel<kernel<cuda, typename operation_of<Ops...>::type, P, In>, P, In>(chain, 2e-5, {{64, 64}, {131, 65}, {6, 4}});
  };
  compare.operator()<precision::tf32, shape{68}>(type_list<affine<dense_settings{.units = 36}>, relu>{});
  compare.operator()<precision::mixed_bf16, shape{100}>(type_list<affine<dense_settings{.units = 72}>>{});
  compare.operator()<precision::mixed_bf16, shape{64}>(type_list<affine<dense_settings{.units = 32, .bias = false}>>{});
  compare.operator()<precision::tf32, shape{580}>(type_list<affine<dense_settings{.units = 40}>, relu>{});  // forward in parts
}

TEST_CASE("rounding to bfloat16 and to TF32") {
  using machine::bfloat16, machine::nearest_tf32;
  static_assert(float(bfloat16::nearest(1 + 0x1p-8f)) == 1);                // a tie goes to even
  static_assert(float(bfloat16::nearest(1 + 3 * 0x1p-8f)) == 1 + 0x1p-6f);  // the other way
  static_assert(float(bfloat16::nearest(-1 - 0x1.01p-8f)) == -1 - 0x1p-7f);
  static_assert(nearest_tf32(1 + 0x1p-11f) == 1 + 0x1p-10f);  // a tie goes away from zero
  static_assert(nearest_tf32(-1 - 0x1.8p-12f) == -1);
  constexpr float most = std::numeric_limits<float>::max(), inf = std::numeric_limits<float>::infinity();
  static_assert(float(bfloat16::nearest(most)) == inf && nearest_tf32(most) == inf && nearest_tf32(-inf) == -inf);
  const float nan = std::bit_cast<float>(0x7f80'0001u);  // its upper half is an infinity
  CHECK(std::isnan(float(bfloat16::nearest(nan))));
  CHECK(std::isnan(nearest_tf32(nan)));
}

TEST_CASE("convolution: strides, dilations, padding") {
  compare_with_reference<type_list<convolution<conv_settings{.filters = 4, .kernel_height = 3, .kernel_width = 3}>>,
                         shape{7, 6, 3}>();
  compare_with_reference<type_list<convolution<conv_settings{.filters = 70, .kernel_height = 1, .kernel_width = 1}>>,
                         shape{3, 2, 5}>();
  compare_with_reference<type_list<convolution<conv_settings{
                             .filters = 3, .kernel_height = 2, .kernel_width = 3, .stride_height = 2, .same = true}>>,
                         shape{8, 5, 2}>();
  compare_with_reference<
      type_list<convolution<conv_settings{
          .filters = 2, .kernel_height = 3, .kernel_width = 2, .dilation_height = 2, .dilation_width = 3, .bias = false}>>,
      shape{9, 8, 4}>();
  compare_with_reference<
      type_list<convolution<conv_settings{.filters = 8, .kernel_height = 3, .kernel_width = 3, .same = true}>, relu>,
      shape{6, 6, 4}>();
}

TEST_CASE("gradients of kernels with many terms, for one leaf and for more than are computed at once") {
  using namespace strata::test;
  have_devices(1);
  const auto compare = []<class Op, shape In>() {
    compare_kernel<kernel<cuda, Op, precision::f32, In>, precision::f32, In>(type_list<Op>{}, 2e-5, {{3, 3}, {19, 1}});
  };
  compare.operator()<convolution<conv_settings{.filters = 3, .kernel_height = 3, .kernel_width = 3}>, shape{40, 35, 1}>();
  compare.
  operator()<convolution<conv_settings{.filters = 20, .kernel_height = 2, .kernel_width = 2, .bias = false}>, shape{33, 40, 5}>();
  compare.operator()<transposed_convolution<transposed_conv_settings{.filters = 2, .kernel_height = 3, .kernel_width = 3}>,
                     shape{33, 36, 3}>();
}

TEST_CASE("convolution, activation and pooling in one kernel") {
  compare_with_reference<type_list<convolution<conv_settings{.filters = 5, .kernel_height = 3, .kernel_width = 3}>, relu,
                                   max_pooling<pool_settings{2, 2}>>,
                         shape{8, 7, 3}>();
  compare_with_reference<
      type_list<convolution<conv_settings{.filters = 33, .kernel_height = 2, .kernel_width = 3, .same = true, .bias = false}>,
                tanh_activation, max_pooling<pool_settings{2, 2, 2, 2, true}>>,
      shape{6, 4, 2}>();
}

TEST_CASE("convolution in groups, and depthwise") {
  compare_with_reference<type_list<convolution<conv_settings{.filters = 6, .kernel_height = 3, .kernel_width = 3, .groups = 2}>>,
                         shape{6, 7, 4}>();
  compare_with_reference<type_list<convolution<conv_settings{.filters = 8,
                                                             .kernel_height = 3,
                                                             .kernel_width = 3,
                                                             .stride_height = 2,
                                                             .stride_width = 2,
                                                             .groups = 4,
                                                             .same = true}>,
                                   elu<>>,
                         shape{7, 5, 4}>();
}

TEST_CASE("transposed convolution") {
  compare_with_reference<
      type_list<transposed_convolution<transposed_conv_settings{.filters = 3, .kernel_height = 3, .kernel_width = 2}>>,
      shape{4, 5, 2}>();
  compare_with_reference<
      type_list<transposed_convolution<transposed_conv_settings{
                    .filters = 4, .kernel_height = 3, .kernel_width = 3, .stride_height = 2, .stride_width = 2, .same = true}>,
                sigmoid>,
      shape{4, 3, 5}>();
  compare_with_reference<type_list<transposed_convolution<transposed_conv_settings{
                             .filters = 2, .kernel_height = 2, .kernel_width = 2, .dilation_height = 2, .bias = false}>>,
                         shape{3, 4, 3}>();
}

TEST_CASE("pooling: windows that overlap, that leave gaps, that reach over the edge") {
  compare_with_reference<type_list<max_pooling<pool_settings{2, 2}>>, shape{6, 4, 3}>();
  compare_with_reference<type_list<max_pooling<pool_settings{2, 2}>>, shape{7, 5, 2}>();
  compare_with_reference<type_list<max_pooling<pool_settings{3, 2, 2, 1, true}>>, shape{7, 6, 2}>();
  compare_with_reference<type_list<max_pooling<pool_settings{2, 1, 3, 2}>>, shape{8, 7, 3}>();
  compare_with_reference<type_list<max_pooling<pool_settings{3, 3, 3, 3, true}>>, shape{7, 8, 2}>();
  compare_with_reference<type_list<average_pooling<pool_settings{2, 2}>>, shape{5, 4, 3}>();
  compare_with_reference<type_list<average_pooling<pool_settings{3, 3, 2, 1, true}>>, shape{7, 5, 2}>();
  compare_with_reference<type_list<global_max_pool2d>, shape{5, 4, 3}>();
  compare_with_reference<type_list<global_average_pool2d>, shape{5, 4, 3}>();
}

TEST_CASE("layer normalization") {
  compare_with_reference<type_list<layer_normalization<layer_norm_settings{}>>, shape{3, 7}>();
  compare_with_reference<type_list<layer_normalization<layer_norm_settings{.center = false}>>, shape{200}>();
  compare_with_reference<type_list<layer_normalization<layer_norm_settings{.scale = false}>>, shape{2, 2, 40}>();
}

TEST_CASE("embedding, dropout, normalization") {
  compare_with_reference<type_list<lookup<embedding_settings{.rows = 9, .width = 5}>>, shape{6}>();
  compare_with_reference<type_list<dropout<0.3_r>>, shape{4, 5}>();
  compare_with_reference<type_list<dropout<0.3_r, shape{1, 5}>>, shape{4, 5}>();
  compare_with_reference<type_list<normalization>, shape{3, 4}>();
}

TEST_CASE("columns") {
  compare_with_reference<type_list<column_slice<column_settings{.first = 0, .count = 3}>>, shape{8}>();
  compare_with_reference<type_list<column_slice<column_settings{.first = 2, .count = 2}>>, shape{3, 2, 5}>();
}

TEST_CASE_TEMPLATE("the gradient of an embedding has the bits of sums in the order of the samples", T, float, double) {
  const auto any = [](int rows) { return [rows](int i) { return int(std::abs(test::number(1, std::size_t(i))) * rows); }; };
  SUBCASE("blocks that own several rows, many of which no index names") {
    check_gradient_of_table<T, 1100, 3, 7>(5, 2, any(1100));
    check_gradient_of_table<T, 1100, 64, 3>(5, 2, any(1100));
  }
  SUBCASE("more indices than a block scans at a time, of rows that come again and again") {
    check_gradient_of_table<T, 9, 5, 300>(9, 8, any(9));
    check_gradient_of_table<T, 40, 33, 150>(17, 8, [](int i) { return i % 7 == 0 ? i % 40 : 3; });
  }
  SUBCASE("one row only") {
    check_gradient_of_table<T, 3, 20, 110>(21, 10, [](int) { return 2; });
  }
  SUBCASE("all indices name rows of one block, in turn") {
    check_gradient_of_table<T, 2100, 16, 50>(5, 2, [](int i) { return 5 + 1024 * (i * i % 5 % 3); });
    check_gradient_of_table<T, 2100, 100, 50>(5, 2, [](int i) { return 7 + 512 * (i * i % 5 % 3); });
  }
  SUBCASE("more columns than threads, and one column") {
    check_gradient_of_table<T, 6, 300, 20>(7, 3, any(6));
    check_gradient_of_table<T, 6, 1, 20>(7, 3, any(6));
    check_gradient_of_table<T, 1, 1, 1>(1, 1, any(1));
  }
}

TEST_CASE("padding and enlarging") {
  compare_with_reference<type_list<zero_padding<padding_settings{1, 2, 0, 3}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<zero_padding<padding_settings{-1, 2, 0, -3}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{2, 3}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{2, 3, true}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{4, 5, true}>>, shape{2, 1, 1}>();
}

TEST_CASE_TEMPLATE("joins", Join, sum_of_branches, difference_of_branches, product_of_branches, mean_of_branches,
                   largest_of_branches) {
  compare_with_reference<type_list<Join>, shape{3, 4}, shape{3, 4}>();
}

TEST_CASE("concatenation") { compare_with_reference<type_list<stack_of_branches>, shape{2, 3}, shape{2, 1}, shape{2, 4}>(); }
