// y = x W + b by hand.
#include "run_kernel.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

using two_to_three = run<affine<dense_settings{3}>, shape{2}>;
static_assert(two_to_three::forward({{1, 2}}, {{1, 2, 3, 10, 20, 30}, {0.5, 0, -1}}) == std::array{21.5, 42.0, 62.0});
static_assert(two_to_three::forward<2>({{1, 0, 0, 1}}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}) ==
              std::array<double, 6>{1, 2, 3, 10, 20, 30});
static_assert(two_to_three::dx({{1, 2}}, {1, 0, 2}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}) == std::array<double, 2>{7, 70});
static_assert(two_to_three::dx({{1, 2}}, {1, 0, 2}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}, 100) == std::array<double, 2>{107, 170});
static_assert(two_to_three::dw<0>({{1, 2}}, {1, 0, 2}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}) ==
              std::array<double, 6>{1, 0, 2, 2, 0, 4});
static_assert(two_to_three::dw<1, 2>({{1, 2, 3, 4}}, {1, 0, 2, 5, 6, 7}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}) ==
              std::array<double, 3>{6, 6, 9});
static_assert(two_to_three::dw<1>({{1, 2}}, {1, 0, 2}, {{1, 2, 3, 10, 20, 30}, {0, 0, 0}}, 100) ==
              std::array<double, 3>{101, 100, 102});

using without_bias = run<affine<dense_settings{.units = 1, .bias = false}>, shape{3}>;
static_assert(without_bias::forward({{1, 2, 3}}, {{1, 10, 100}}) == std::array{321.0});
