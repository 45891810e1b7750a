// The reference kernels against central differences: odd shapes, every option.
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/reference/reference.hpp>

#include "gradients.hpp"

using namespace strata;
using namespace strata::core;
using strata::test::check_gradients;
using strata::test::gradient_complaints;

template <class Layer>
using operation_of = detail::at_t<0, operations_of<Layer>>;

TEST_CASE("dense") {
  check_gradients<reference, operation_of<dense<5>>, shape{7}>();
  check_gradients<reference, operation_of<dense<1, no_bias>>, shape{3}>();
  check_gradients<reference, operation_of<dense<4>>, shape{1}>();
}

TEST_CASE("conv2d") {
  check_gradients<reference, operation_of<conv2d<3, 3>>, shape{5, 4, 2}>();
  check_gradients<reference, operation_of<conv2d<2, 1, no_bias>>, shape{3, 2, 3}>();
  check_gradients<reference, operation_of<conv2d<2, 3, same_padding>>, shape{5, 4, 2}>();
  check_gradients<reference, operation_of<conv2d<2, 2, same_padding>>, shape{3, 4, 1}>();
  check_gradients<reference, operation_of<conv2d<2, 3, stride<2, 1>>>, shape{6, 5, 2}>();
  check_gradients<reference, operation_of<conv2d<2, 3, stride<2>, same_padding>>, shape{6, 5, 2}>();
  check_gradients<reference, operation_of<conv2d<2, 3, dilation<2, 1>>>, shape{6, 4, 1}>();
  check_gradients<reference, operation_of<conv2d<2, 3, dilation<2>, same_padding>>, shape{4, 5, 2}>();
  check_gradients<reference, operation_of<conv2d<4, 3, channel_groups<2>>>, shape{4, 4, 6}>();
  check_gradients<reference, operation_of<conv2d<6, 3, channel_groups<3>, same_padding, no_bias>>, shape{3, 3, 3}>();
  check_gradients<reference, operation_of<conv2d<2, 3, kernel_size<1, 3>>>, shape{3, 5, 2}>();
}

TEST_CASE("conv2d_transpose") {
  check_gradients<reference, operation_of<conv2d_transpose<3, 3>>, shape{4, 3, 2}>();
  check_gradients<reference, operation_of<conv2d_transpose<2, 3, stride<2>, same_padding>>, shape{3, 4, 3}>();
  check_gradients<reference, operation_of<conv2d_transpose<2, 1, stride<3, 2>, no_bias>>, shape{2, 3, 1}>();
  check_gradients<reference, operation_of<conv2d_transpose<2, 3, dilation<2>, kernel_size<2, 1>>>, shape{3, 2, 2}>();
}

TEST_CASE("pooling") {
  check_gradients<reference, operation_of<max_pool2d<2>>, shape{5, 4, 3}>();
  check_gradients<reference, operation_of<max_pool2d<3, stride<2>>>, shape{7, 5, 2}>();
  check_gradients<reference, operation_of<max_pool2d<3, stride<2>, same_padding>>, shape{6, 5, 2}>();
  check_gradients<reference, operation_of<max_pool2d<2, pool_size<1, 3>, stride<1, 2>>>, shape{3, 7, 1}>();
  check_gradients<reference, operation_of<average_pool2d<2>>, shape{5, 4, 3}>();
  check_gradients<reference, operation_of<average_pool2d<3, stride<1>, same_padding>>, shape{5, 4, 2}>();
  check_gradients<reference, operation_of<average_pool2d<3, stride<2>, same_padding>>, shape{6, 5, 2}>();
  check_gradients<reference, global_average_pool2d, shape{3, 5, 4}>();
  check_gradients<reference, global_max_pool2d, shape{3, 5, 4}>();
}

TEST_CASE("activations") {
  check_gradients<reference, relu, shape{3, 5, 2}>();
  check_gradients<reference, relu6, shape{31}>({.low = -3, .high = 9.1});
  check_gradients<reference, hard_sigmoid, shape{31}>({.low = -4, .high = 4.1});
  check_gradients<reference, scale_and_offset<-0.3_r, 1.25_r>, shape{31}>();
  check_gradients<reference, hard_silu, shape{31}>({.low = -4, .high = 4.1});
  check_gradients<reference, leaky_relu<>, shape{31}>();
  check_gradients<reference, leaky_relu<0.3_r>, shape{31}>();
  check_gradients<reference, elu<>, shape{31}>();
  check_gradients<reference, elu<1.5_r>, shape{31}>();
  check_gradients<reference, selu, shape{31}>();
  check_gradients<reference, gelu, shape{31}>({.low = -4, .high = 4});
  check_gradients<reference, gelu_approximate, shape{31}>({.low = -4, .high = 4});
  check_gradients<reference, silu, shape{31}>({.low = -5, .high = 5});
  check_gradients<reference, sigmoid, shape{31}>({.low = -5, .high = 5});
  check_gradients<reference, tanh_activation, shape{31}>();
  check_gradients<reference, softplus, shape{31}>({.low = -5, .high = 5});
  check_gradients<reference, softsign, shape{31}>();
  check_gradients<reference, softmax, shape{7}>();
  check_gradients<reference, softmax, shape{2, 3, 4}>();
}

namespace {
/// A user-defined activation: two formulas suffice for every backend that builds on activation_function.
struct cube {
  using is_activation = void;
  static constexpr auto name = "cube";
  static constexpr expected_shape output_shape(shape in) { return in; }
  static constexpr bool uses_input = true, uses_output = false;
  template <class T>
  static constexpr T value(T x) {
    return x * x * x;
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    return 3 * x * x;
  }
};
}  // namespace

TEST_CASE("an activation of one's own") {
  static_assert(elementwise_activation<cube> && !elementwise_activation<softmax> && !elementwise_activation<flatten>);
  check_gradients<reference, cube, shape{3, 5}>();
}

TEST_CASE("dropout") {
  check_gradients<reference, dropout<0.5_r>, shape{3, 5, 2}>();
  check_gradients<reference, dropout<0.1_r>, shape{13}>();
  check_gradients<reference, dropout<0_r>, shape{5}>();
  check_gradients<reference, dropout<0.5_r, shape{1, 5, 1}>, shape{3, 5, 2}>();
}

TEST_CASE("normalization") {
  check_gradients<reference, operation_of<batch_norm<>>, shape{3, 2, 4}>();
  check_gradients<reference, operation_of<batch_norm<>>, shape{5}>();
  check_gradients<reference, operation_of<batch_norm<no_scale>>, shape{3, 4}>();
  check_gradients<reference, operation_of<batch_norm<no_center, epsilon<0.1_r>>>, shape{3, 4}>({.count = 4});
  check_gradients<reference, operation_of<batch_norm<no_center, no_scale>>, shape{2, 3}>();
  check_gradients<reference, normalization, shape{3, 2, 4}>();
  check_gradients<reference, operation_of<layer_norm<>>, shape{7}>();
  check_gradients<reference, operation_of<layer_norm<epsilon<1e-5_r>>>, shape{3, 2, 5}>();
  check_gradients<reference, operation_of<layer_norm<no_scale>>, shape{2, 3}>();
  check_gradients<reference, operation_of<layer_norm<no_center>>, shape{2, 3}>();
  check_gradients<reference, operation_of<layer_norm<no_center, no_scale>>, shape{5}>();
}

TEST_CASE("columns") {
  check_gradients<reference, operation_of<columns<0, 3>>, shape{5}>();
  check_gradients<reference, operation_of<columns<2, 1>>, shape{3, 2, 4}>();
}

TEST_CASE("zero_padding2d") {
  check_gradients<reference, operation_of<zero_padding2d<1>>, shape{3, 2, 2}>();
  check_gradients<reference, operation_of<zero_padding2d<1, 0, 2, 3>>, shape{2, 3, 2}>();
  check_gradients<reference, zero_padding<padding_settings{-1, 0, -2, 1}>, shape{3, 5, 2}>();
}

TEST_CASE("up_sampling2d") {
  check_gradients<reference, operation_of<up_sampling2d<2>>, shape{3, 2, 2}>();
  check_gradients<reference, operation_of<up_sampling2d<2, sampling_size<3, 1>>>, shape{2, 3, 1}>();
  check_gradients<reference, operation_of<up_sampling2d<2, bilinear_interpolation>>, shape{3, 2, 2}>();
  check_gradients<reference, operation_of<up_sampling2d<2, bilinear_interpolation, sampling_size<1, 3>>>, shape{1, 4, 3}>();
}

TEST_CASE("joins") {
  check_gradients<reference, sum_of_branches, shape{3, 2, 2}, shape{3, 2, 2}>();
  check_gradients<reference, sum_of_branches, shape{5}, shape{5}, shape{5}>();
  check_gradients<reference, stack_of_branches, shape{3, 2, 1}, shape{3, 2, 4}, shape{3, 2, 2}>();
  check_gradients<reference, stack_of_branches, shape{5}, shape{3}>();
  check_gradients<reference, mean_of_branches, shape{5}, shape{5}, shape{5}>();
  check_gradients<reference, difference_of_branches, shape{3, 2, 2}, shape{3, 2, 2}>();
  check_gradients<reference, product_of_branches, shape{3, 2, 2}, shape{3, 2, 2}>();
  check_gradients<reference, product_of_branches, shape{5}, shape{5}, shape{5}>();
  check_gradients<reference, largest_of_branches, shape{3, 2, 2}, shape{3, 2, 2}>();
  check_gradients<reference, largest_of_branches, shape{5}, shape{5}, shape{5}>();
}

// The check itself must be able to fail: y = x^2 with one mistake at a time.
enum class mistake { none, wrong_slope, always_stores, always_adds, ignores_null, reads_y, forgets_an_element };

template <mistake M>
struct square {
  static constexpr auto name = "square";
  static constexpr expected_shape output_shape(shape in) { return in; }
};

template <mistake M, class P, shape In>
struct strata::core::kernel<reference, square<M>, P, In> {
  using T = typename P::value_type;
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size() - (M == mistake::forgets_an_element); ++i) o.y[i] = o.x[0][i] * o.x[0][i];
  }
  static void backward(const operands<T>& o) {
    static T elsewhere[1000];
    T* const dx = o.dx[0] ? o.dx[0] : elsewhere;
    if (M == mistake::ignores_null && !o.dx[0]) throw std::runtime_error("null");
    for (int i = 0; i < o.count * In.size(); ++i) {
      const T g = T(M == mistake::wrong_slope ? 2.0001 : 2) * o.x[0][i] * o.dy[i] + (M == mistake::reads_y ? 0 * o.y[i] : T{});
      const bool adds = M == mistake::always_adds || (o.adds_dx[0] && M != mistake::always_stores);
      dx[i] = adds ? dx[i] + g : g;
    }
  }
};

TEST_CASE("the check finds mistakes") {
  CHECK(gradient_complaints<reference, square<mistake::none>, shape{7}>().empty());
  CHECK_FALSE(gradient_complaints<reference, square<mistake::wrong_slope>, shape{7}>().empty());
  CHECK_FALSE(gradient_complaints<reference, square<mistake::always_stores>, shape{7}>().empty());
  CHECK_FALSE(gradient_complaints<reference, square<mistake::always_adds>, shape{7}>().empty());
  CHECK_FALSE(gradient_complaints<reference, square<mistake::reads_y>, shape{7}>().empty());
  CHECK_FALSE(gradient_complaints<reference, square<mistake::forgets_an_element>, shape{7}>().empty());
  CHECK_THROWS(gradient_complaints<reference, square<mistake::ignores_null>, shape{7}>());
}
