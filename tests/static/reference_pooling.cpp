// Pooling by hand: ties, padding, overlapping windows.
#include "run_kernel.hpp"
using namespace strata;
using namespace strata::test;

using max2 = run<operation_of<max_pool2d<2>>, shape{2, 4, 1}>;
static_assert(max2::forward({{1, 5, 2, 2, 3, 4, 2, 2}}) == std::array<double, 2>{5, 2});
static_assert(max2::dx({{1, 5, 2, 2, 3, 4, 2, 2}}, {7, 9}) ==
              std::array<double, 8>{0, 7, 9, 0, 0, 0, 0, 0});  // the first of four wins
static_assert(max2::dx({{1, 5, 2, 2, 3, 4, 2, 2}}, {7, 9}, {}, 1) == std::array<double, 8>{1, 8, 10, 1, 1, 1, 1, 1});

// A row and a column are left over.
static_assert(run<operation_of<max_pool2d<2>>, shape{3, 3, 1}>::forward({{1, 2, 9, 3, 4, 9, 9, 9, 9}}) == std::array{4.0});

// Padding never wins, not even against negative numbers.
using max_same = run<operation_of<max_pool2d<2, same_padding>>, shape{3, 3, 1}>;
static_assert(max_same::forward({{-1, -2, -3, -4, -5, -6, -7, -8, -9}}) == std::array<double, 4>{-1, -3, -7, -9});

// Overlapping windows: one element may win several times.
using overlapping = run<operation_of<max_pool2d<2, stride<1>>>, shape{2, 3, 1}>;
static_assert(overlapping::forward({{1, 8, 2, 3, 4, 5}}) == std::array<double, 2>{8, 8});
static_assert(overlapping::dx({{1, 8, 2, 3, 4, 5}}, {10, 1}) == std::array<double, 6>{0, 11, 0, 0, 0, 0});

// Channels do not mix.
static_assert(run<operation_of<max_pool2d<2>>, shape{2, 2, 2}>::forward({{1, 40, 2, 30, 3, 20, 4, 10}}) ==
              std::array<double, 2>{4, 40});

using mean2 = run<operation_of<average_pool2d<2>>, shape{2, 4, 1}>;
static_assert(mean2::forward({{1, 5, 2, 2, 3, 7, 2, 6}}) == std::array<double, 2>{4, 3});
static_assert(mean2::dx({{1, 5, 2, 2, 3, 7, 2, 6}}, {4, 8}) == std::array<double, 8>{1, 1, 2, 2, 1, 1, 2, 2});

// Padding does not count: windows of 4, 2, 2 and 1 elements.
using mean_same = run<operation_of<average_pool2d<2, same_padding>>, shape{3, 3, 1}>;
static_assert(mean_same::forward({{1, 2, 3, 4, 5, 6, 7, 8, 9}}) == std::array<double, 4>{3, 4.5, 7.5, 9});
static_assert(mean_same::dx({{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {4, 4, 4, 4}) == std::array<double, 9>{1, 1, 2, 1, 1, 2, 2, 2, 4});

using all_mean = run<global_average_pool2d, shape{2, 2, 2}>;
static_assert(all_mean::forward<2>({{1, 10, 2, 20, 3, 30, 6, 60, 0, 0, 0, 4, 0, 0, 0, 0}}) == std::array<double, 4>{3, 30, 0, 1});
static_assert(all_mean::dx({{1, 10, 2, 20, 3, 30, 6, 60}}, {4, 8}) == std::array<double, 8>{1, 2, 1, 2, 1, 2, 1, 2});

using all_max = run<global_max_pool2d, shape{2, 2, 2}>;
static_assert(all_max::forward({{1, 10, 6, 60, 6, 30, 3, 60}}) == std::array<double, 2>{6, 60});
static_assert(all_max::dx({{1, 10, 6, 60, 6, 30, 3, 60}}, {4, 8}) == std::array<double, 8>{0, 0, 4, 8, 0, 0, 0, 0});
