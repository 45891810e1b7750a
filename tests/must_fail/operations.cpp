// Operations, kernels and programs of one's own.
#include <strata/base/numbers_of.hpp>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
using namespace strata::core;

// case: item_that_is_no_layer
// error: shape_mismatch<.*at_index<1>.*by_layer<int>.*receives<8>.*because<.*items_of_a_network_are_layers>
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, int>;
#endif
net n;

// case: kernel_without_backward
// error: missing_kernel<.*by_layer<.*calibration>.*because<.*a_kernel_has_static_forward_and_backward_of_const_operands
// whole program
#include <strata/strata.hpp>

struct calibration {
  static constexpr auto name = "calibration";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
template <class P, shape In>
struct strata::core::kernel<reference, calibration, P, In> {
  using T = typename P::value_type;
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.y[i] = o.x[0][i];
  }
#ifdef TWIN
  static void backward(const operands<T>& o) {
    for (int i = 0; o.dx[0] && i < o.count * In.size(); ++i) o.dx[0][i] = o.dy[i];
  }
#endif
};
void train() {
  trainer model{sequential<input<3>, dense<2>, calibration, dense<1>>{}, adam{}, mean_squared_error{}};
  const std::vector<float> x(300), y(100);
  model.fit(x, y, epochs(1));
}

// case: operation_parameters_without_an_array
// error: shape_mismatch<.*at_index<2>.*by_layer<.*calibration>.*because<.*operations_have_parameters_in_a_std_array>
#include <array>
#include <strata/strata.hpp>

struct calibration {
  static constexpr auto name = "calibration";
  static constexpr expected_shape output_shape(shape in) { return in; }
#ifdef TWIN
  static constexpr std::array<parameter, 1> parameters(shape in) { return {{{"gain", {in.last()}, &info_of_initializer<ones>}}}; }
#else
  static constexpr parameter parameters(shape in) { return {"gain", {in.last()}, &info_of_initializer<ones>}; }
#endif
};
using net = sequential<input<3>, dense<2>, calibration, dense<1>>;
constexpr long size = layout_of<net::items>.size;

// case: operation_trait_misspelt
// error: (operation_traits.*element_wise|element_wise.*operation_traits)
#include <strata/strata.hpp>

struct twice {
  using is_activation = void;
  static constexpr auto name = "twice";
#ifdef TWIN
  static constexpr operation_traits traits{.elementwise = true};
#else
  static constexpr operation_traits traits{.element_wise = true};
#endif
  static constexpr expected_shape output_shape(shape in) { return in; }
};

static_assert(operation<twice>);

// case: kernel_trait_misspelt
// error: (kernel_traits.*read_input|read_input.*kernel_traits)
#include <strata/strata.hpp>

struct same {
  static constexpr auto name = "same";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
template <class P, shape In>
struct strata::core::kernel<reference, same, P, In> {
#ifdef TWIN
  static constexpr kernel_traits traits{.reads_input = false};
#else
  static constexpr kernel_traits traits{.read_input = false};
#endif
};
static_assert(has_kernel<reference, same, precision::f32, shape{3}>);

// case: kernel_trait_outside_of_traits
// error: traits of a kernel are members of .static constexpr kernel_traits traits
#include <strata/kernel/kernel.hpp>  // first: the error has few lines then

#include <strata/strata.hpp>

struct same {
  static constexpr auto name = "same";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
template <class P, shape In>
struct strata::core::kernel<reference, same, P, In> {
#ifdef TWIN
  static constexpr kernel_traits traits{.reads_input = false};
#else
  static constexpr kernel_traits traits{};
  static constexpr bool reads_input = false;
#endif
};
static_assert(traits_of_kernel<kernel<reference, same, precision::f32, shape{3}>>.saved == 0);

// case: operation_without_name
// error: shape_mismatch<.*at_index<1>.*by_layer<.*layer_of_mine>.*because<.*operations_have_a_name>
struct operation_of_mine {
#ifdef TWIN
  static constexpr auto name = "operation_of_mine";
#endif
  static constexpr expected_shape output_shape(shape in) { return in; }
};
struct layer_of_mine {
  static constexpr auto name = "layer_of_mine";
  using operations = type_list<operation_of_mine>;
};
using net = sequential<input<8>, layer_of_mine, dense<4>>;
net n;

// case: operation_without_output_shape
// error: shape_mismatch<.*at_index<1>.*by_layer<.*operation_of_mine>.*because<.*layers_have_operations_and_operations_have_output_shape>
struct operation_of_mine {
  static constexpr auto name = "operation_of_mine";
#ifdef TWIN
  static constexpr expected_shape output_shape(shape in) { return in; }
#endif
};
using net = sequential<input<8>, operation_of_mine, dense<4>>;
net n;

// case: program_loss_does_not_fit
// error: shape_mismatch<.*at_index<1>.*by_layer<.*sparse_categorical_crossentropy.*receives<26, 26, 4>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<4, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<4, 3>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: program_missing_kernel
// error: missing_kernel<.*at_node<2>.*by_layer<.*dense<4, .*twice>.*for_operation<.*twice>.*on_backend<.*cpu>.*because<.*an_activation_has_value_derivative_uses_input_and_uses_output_or_a_kernel_of_its_own
// whole program
#include <strata/strata.hpp>

struct twice {
  using is_activation = void;
  static constexpr auto name = "twice";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
#ifdef TWIN
using activation_of_mine = relu;
#else
using activation_of_mine = twice;
#endif
using net = sequential<input<8>, dense<4, activation_of_mine>, dense<1>>;
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}

// case: settings_of_13_members
// error: a settings value has more than 12 members: group some of them in a struct
struct settings_value {
  int a, b, c, d, e, f, g, h, i, j, k, l;
#ifndef TWIN
  int m;
#endif
};
template <settings_value Settings>
struct of_mine {};
const auto numbers = detail::numbers_of<of_mine<settings_value{1, 2, 3}>>;
