// Every reference kernel in float: nothing is widened or narrowed by accident.
#include <strata/layers/add.hpp>

#include "run_kernel.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

template <class Operation, shape... In>
constexpr bool compiles = code_of<kernel<reference, Operation, precision::f32, In...>, float>.backward != nullptr;

static_assert(compiles<operation_of<dense<3>>, shape{5}> && compiles<operation_of<conv2d<3, 2>>, shape{4, 4, 2}>);
static_assert(compiles<operation_of<max_pool2d<2>>, shape{4, 4, 2}> && compiles<operation_of<average_pool2d<2>>, shape{4, 4, 2}>);
static_assert(compiles<global_average_pool2d, shape{4, 4, 2}> && compiles<global_max_pool2d, shape{4, 4, 2}>);
static_assert(compiles<relu, shape{5}> && compiles<relu6, shape{5}> && compiles<hard_sigmoid, shape{5}> &&
              compiles<hard_silu, shape{5}> && compiles<leaky_relu<>, shape{5}>);
static_assert(compiles<elu<>, shape{5}> && compiles<selu, shape{5}> && compiles<silu, shape{5}> && compiles<sigmoid, shape{5}>);
static_assert(compiles<gelu, shape{5}> && compiles<gelu_approximate, shape{5}> && compiles<tanh_activation, shape{5}>);
static_assert(compiles<softplus, shape{5}> && compiles<softsign, shape{5}> && compiles<softmax, shape{5}>);
static_assert(compiles<dropout<0.5_r>, shape{5}>);
static_assert(compiles<operation_of<batch_norm<>>, shape{4, 2}> && compiles<operation_of<layer_norm<>>, shape{4, 2}>);
static_assert(compiles<operation_of<columns<1, 2>>, shape{5}>);
static_assert(compiles<operation_of<embedding<3, 2>>, shape{5}>);
static_assert(compiles<operation_of<zero_padding2d<1>>, shape{4, 4, 2}>);
static_assert(compiles<sum_of_branches, shape{5}, shape{5}> && compiles<stack_of_branches, shape{5}, shape{3}>);
