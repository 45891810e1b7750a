// Each kernel of the CUDA backend against the reference in double precision: forward, and backward leaf by leaf.
// needs: boost_context
#include "compare.hpp"

#include <limits>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>

using namespace strata;

TEST_CASE_TEMPLATE("elementwise activations", A, relu, relu6, leaky_relu<0.2_r>, elu<>, selu, sigmoid, tanh_activation, softplus,
                   softsign, silu, gelu, gelu_approximate) {
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
  compare_with_reference<type_list<normalization>, shape{3, 4}>();
}

TEST_CASE("padding and enlarging") {
  compare_with_reference<type_list<zero_padding<padding_settings{1, 2, 0, 3}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{2, 3}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{2, 3, true}>>, shape{3, 4, 2}>();
  compare_with_reference<type_list<up_sampling<up_sampling_settings{4, 5, true}>>, shape{2, 1, 1}>();
}

TEST_CASE_TEMPLATE("joins", Join, sum_of_branches, difference_of_branches, product_of_branches, mean_of_branches,
                   largest_of_branches) {
  compare_with_reference<type_list<Join>, shape{3, 4}, shape{3, 4}>();
}

TEST_CASE("concatenation") { compare_with_reference<type_list<stack_of_branches>, shape{2, 3}, shape{2, 1}, shape{2, 4}>(); }
