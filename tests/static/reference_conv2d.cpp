// Convolutions and transposed convolutions by hand: every setting once.
#include "run_kernel.hpp"
using namespace strata;
using namespace strata::test;

constexpr std::initializer_list<double> nine = {1, 2, 3,  //
                                                4, 5, 6,  //
                                                7, 8, 9};

// The kernel is not flipped: top left + 10 * bottom right + bias.
using diagonal = run<operation_of<conv2d<1, 2>>, shape{3, 3, 1}>;
static_assert(diagonal::out == shape{2, 2, 1});
static_assert(diagonal::forward({nine}, {{1, 0, 0, 10}, {0.5}}) == std::array{51.5, 62.5, 84.5, 95.5});
static_assert(diagonal::dx({nine}, {1, 2, 3, 4}, {{1, 0, 0, 10}, {0}}) == std::array<double, 9>{1, 2, 0, 3, 14, 20, 0, 30, 40});
static_assert(diagonal::dx({nine}, {1, 2, 3, 4}, {{1, 0, 0, 10}, {0}}, 100) ==
              std::array<double, 9>{101, 102, 100, 103, 114, 120, 100, 130, 140});
static_assert(diagonal::dw<0>({nine}, {1, 0, 0, 1}, {{1, 0, 0, 10}, {0}}) == std::array<double, 4>{6, 8, 12, 14});
static_assert(diagonal::dw<1>({nine}, {1, 2, 3, 4}, {{1, 0, 0, 10}, {0}}) == std::array<double, 1>{10});

// Same padding, 2x2: the odd zero comes last, so that the first window lies at the first element.
using same = run<operation_of<conv2d<1, 2, same_padding, no_bias>>, shape{3, 3, 1}>;
static_assert(same::forward({nine}, {{1, 0, 0, 10}}) == std::array<double, 9>{51, 62, 3, 84, 95, 6, 7, 8, 9});

// Same padding, 3x3: one zero on every side.
using centred = run<operation_of<conv2d<1, 3, same_padding, no_bias>>, shape{3, 3, 1}>;
static_assert(centred::forward({nine}, {{1, 1, 1, 1, 1, 1, 1, 1, 1}}) ==
              std::array<double, 9>{12, 21, 16, 27, 45, 33, 24, 39, 28});

// Stride 2 down, 1 across; a 1x2 kernel.
using strided = run<operation_of<conv2d<1, 1, kernel_size<1, 2>, stride<2, 1>, no_bias>>, shape{3, 3, 1}>;
static_assert(strided::forward({nine}, {{1, 10}}) == std::array<double, 4>{21, 32, 87, 98});

// Stride 2 with same padding on an even size: no zero before, one zero after.
using even = run<operation_of<conv2d<1, 1, kernel_size<1, 3>, stride<2>, same_padding, no_bias>>, shape{1, 4, 1}>;
static_assert(even::forward({{1, 2, 3, 4}}, {{1, 10, 100}}) == std::array<double, 2>{321, 43});

// Dilation 2: the corners of the image.
using dilated = run<operation_of<conv2d<1, 2, dilation<2>, no_bias>>, shape{3, 3, 1}>;
static_assert(dilated::forward({nine}, {{1, 10, 100, 1000}}) == std::array{9731.0});
static_assert(dilated::dx({nine}, {2}, {{1, 10, 100, 1000}}) == std::array<double, 9>{2, 0, 20, 0, 0, 0, 200, 0, 2000});

// Two channels, two filters: kernel (1, 1, C, F).
using mixing = run<operation_of<conv2d<2, 1>>, shape{1, 2, 2}>;
static_assert(mixing::forward({{1, 2, 3, 4}}, {{1, 10, 100, 1000}, {0, 1}}) == std::array<double, 4>{201, 2011, 403, 4031});

// Two groups: filters 0 and 1 see channels 0 and 1, filters 2 and 3 see channels 2 and 3. Kernel (1, 1, 2, 4).
using grouped = run<operation_of<conv2d<4, 1, channel_groups<2>, no_bias>>, shape{1, 1, 4}>;
static_assert(grouped::forward({{1, 2, 3, 4}}, {{1, 2, 3, 4, 10, 20, 30, 40}}) == std::array<double, 4>{21, 42, 129, 172});
static_assert(grouped::dx({{1, 2, 3, 4}}, {1, 0, 0, 1}, {{1, 2, 3, 4, 10, 20, 30, 40}}) == std::array<double, 4>{1, 10, 4, 40});
static_assert(grouped::dw<0>({{1, 2, 3, 4}}, {1, 0, 0, 1}, {{1, 2, 3, 4, 10, 20, 30, 40}}) ==
              std::array<double, 8>{1, 0, 0, 3, 2, 0, 0, 4});

// Transposed: each element of x adds the kernel times itself, top left at its own place.
constexpr std::initializer_list<double> four = {1, 2,  //
                                                3, 4};
using enlarged = run<operation_of<conv2d_transpose<1, 2>>, shape{2, 2, 1}>;
static_assert(enlarged::out == shape{3, 3, 1});
static_assert(enlarged::forward({four}, {{1, 0, 0, 10}, {0.5}}) ==
              std::array<double, 9>{1.5, 2.5, 0.5, 3.5, 14.5, 20.5, 0.5, 30.5, 40.5});
static_assert(enlarged::dx({four}, nine, {{1, 0, 0, 10}, {0}}) == std::array<double, 4>{51, 62, 84, 95});
static_assert(enlarged::dx({four}, nine, {{1, 0, 0, 10}, {0}}, 100) == std::array<double, 4>{151, 162, 184, 195});
static_assert(enlarged::dw<0>({four}, nine, {{1, 0, 0, 10}, {0}}) == std::array<double, 4>{37, 47, 67, 77});
static_assert(enlarged::dw<0>({four}, nine, {{1, 0, 0, 10}, {0}}, 100) == std::array<double, 4>{137, 147, 167, 177});
static_assert(enlarged::dw<1>({four}, nine, {{1, 0, 0, 10}, {0}}) == std::array<double, 1>{45});

// Stride 2 across: kernels overlap in one element. Stride 3 with one tap: zeros in between and after the last element.
using overlapping = run<operation_of<conv2d_transpose<1, 1, kernel_size<1, 3>, stride<1, 2>, no_bias>>, shape{1, 2, 1}>;
static_assert(overlapping::forward({{1, 2}}, {{1, 10, 100}}) == std::array<double, 5>{1, 10, 102, 20, 200});
static_assert(overlapping::dx({{1, 2}}, {1, 2, 3, 4, 5}, {{1, 10, 100}}) == std::array<double, 2>{321, 543});
static_assert(overlapping::dw({{1, 2}}, {1, 2, 3, 4, 5}, {{1, 10, 100}}) == std::array<double, 3>{7, 10, 13});
using apart = run<operation_of<conv2d_transpose<1, 1, stride<1, 3>, no_bias>>, shape{1, 2, 1}>;
static_assert(apart::forward({{1, 2}}, {{10}}) == std::array<double, 6>{10, 0, 0, 20, 0, 0});

// Same padding: with stride 2 what would be past the end is cut off, with stride 1 one element at both ends.
using cut_after =
    run<operation_of<conv2d_transpose<1, 1, kernel_size<1, 3>, stride<1, 2>, same_padding, no_bias>>, shape{1, 2, 1}>;
static_assert(cut_after::forward({{1, 2}}, {{1, 10, 100}}) == std::array<double, 4>{1, 10, 102, 20});
using cut_at_both = run<operation_of<conv2d_transpose<1, 1, kernel_size<1, 3>, same_padding, no_bias>>, shape{1, 3, 1}>;
static_assert(cut_at_both::forward({{1, 2, 3}}, {{1, 10, 100}}) == std::array<double, 3>{12, 123, 230});

// Dilation 2: the corners of the output.
using corners = run<operation_of<conv2d_transpose<1, 2, dilation<2>, no_bias>>, shape{1, 1, 1}>;
static_assert(corners::forward({{2}}, {{1, 10, 100, 1000}}) == std::array<double, 9>{2, 0, 20, 0, 0, 0, 200, 0, 2000});
static_assert(corners::dx({{2}}, nine, {{1, 10, 100, 1000}}) == std::array{9731.0});

// Three channels, two filters: kernel (1, 1, F, C). Two samples.
using transposed_mixing = run<operation_of<conv2d_transpose<2, 1>>, shape{1, 1, 3}>;
static_assert(transposed_mixing::forward<2>({{1, 2, 3, 0, 0, 1}}, {{1, 10, 100, 1000, 2000, 3000}, {0, 1}}) ==
              std::array<double, 4>{321, 14001, 100, 3001});
static_assert(transposed_mixing::dx({{1, 2, 3}}, {1, 2}, {{1, 10, 100, 1000, 2000, 3000}, {0, 1}}) ==
              std::array<double, 3>{2001, 4010, 6100});
static_assert(transposed_mixing::dw<0>({{1, 2, 3}}, {1, 2}, {{1, 10, 100, 1000, 2000, 3000}, {0, 1}}) ==
              std::array<double, 6>{1, 2, 3, 2, 4, 6});
static_assert(transposed_mixing::dw<1, 2>({{1, 2, 3, 0, 0, 1}}, {1, 2, 10, 20}, {{1, 10, 100, 1000, 2000, 3000}, {0, 1}}) ==
              std::array<double, 2>{11, 22});
