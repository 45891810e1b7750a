// Activations that need no mathematical library, dropout, the joins, columns, padding and up-sampling, by hand.
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>

#include "run_kernel.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(run<relu, shape{3}>::forward({{-1, 0, 2}}) == std::array<double, 3>{0, 0, 2});
static_assert(run<relu, shape{3}>::dx({{-1, 0, 2}}, {5, 6, 7}) == std::array<double, 3>{0, 0, 7});
static_assert(run<relu, shape{3}>::dx({{-1, 0, 2}}, {5, 6, 7}, {}, 1) == std::array<double, 3>{1, 1, 8});
static_assert(run<relu6, shape{3}>::forward({{-1, 5, 8}}) == std::array<double, 3>{0, 5, 6});
static_assert(run<hard_sigmoid, shape{4}>::forward({{-4, -3, 0, 9}}) == std::array<double, 4>{0, 0, 0.5, 1});
static_assert(run<hard_sigmoid, shape{3}>::dx({{-4, 0, 9}}, {6, 6, 6}) == std::array<double, 3>{0, 1, 0});
static_assert(run<scale_and_offset<2_r, 0.5_r>, shape{2}>::forward({{-1, 3}}) == std::array<double, 2>{-1.5, 6.5});
static_assert(run<scale_and_offset<2_r, 0.5_r>, shape{2}>::dx({{-1, 3}}, {5, 6}) == std::array<double, 2>{10, 12});
static_assert(run<hard_silu, shape{4}>::forward({{-4, 0, 3, 9}}) == std::array<double, 4>{0, 0, 3, 9});
static_assert(run<hard_silu, shape{4}>::dx({{-4, 0, 1.5, 9}}, {6, 6, 6, 6}) == std::array<double, 4>{0, 3, 6, 6});
static_assert(run<relu6, shape{3}>::dx({{-1, 5, 8}}, {5, 6, 7}) == std::array<double, 3>{0, 6, 0});
static_assert(run<leaky_relu<0.25_r>, shape{2}>::forward({{-8, 2}}) == std::array<double, 2>{-2, 2});
static_assert(run<leaky_relu<0.25_r>, shape{2}>::dx({{-8, 2}}, {4, 4}) == std::array<double, 2>{1, 4});
static_assert(run<leaky_relu<>, shape{1}>::forward({{-5}}) == std::array{-1.0});
static_assert(run<softsign, shape{3}>::forward({{-1, 0, 3}}) == std::array<double, 3>{-0.5, 0, 0.75});
static_assert(run<softsign, shape{3}>::dx({{-1, 0, 3}}, {4, 4, 16}) == std::array<double, 3>{1, 4, 1});

// Dropout: a kept element is scaled so that the mean stays; the gradient sees the same mask.
constexpr bool dropout_by_mask() {
  using op = run<dropout<0.5_r>, shape{8}>;
  const auto y = op::forward<2>({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}});
  const auto dx =
      op::dx<0, 2>({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  int kept = 0;
  for (int i = 0; i < 16; ++i) {
    const double factor = dropout<0.5_r>::keeps(philox{42}, i / 8, i % 8) ? 2 : 0;
    if (y[std::size_t(i)] != factor * (i + 1) || dx[std::size_t(i)] != factor) return false;
    kept += factor > 0;
  }
  return kept > 2 && kept < 14;
}
static_assert(dropout_by_mask());

template <decimal Rate>
constexpr int kept_of_1200() {
  int kept = 0;
  for (int sample = 0; sample < 12; ++sample)
    for (int i = 0; i < 100; ++i) kept += dropout<Rate>::keeps(philox{7}, sample, i);
  return kept;
}
static_assert(kept_of_1200<0_r>() == 1200);
static_assert(kept_of_1200<0.25_r>() > 850 && kept_of_1200<0.25_r>() < 950);
static_assert(kept_of_1200<0.9_r>() > 80 && kept_of_1200<0.9_r>() < 160);

constexpr bool inference_is_the_identity() {
  const double x[] = {1, 2, 3};
  double y[3] = {};
  operands<double> o;
  o.count = 1, o.x[0] = x, o.y = y;
  kernel<reference, dropout<0.5_r>, precision::f64, shape{3}>::infer(o);
  return y[0] == 1 && y[1] == 2 && y[2] == 3;
}
static_assert(inference_is_the_identity());

using sum_of_3 = run<sum_of_branches, shape{2}, shape{2}, shape{2}>;
static_assert(sum_of_3::forward({{1, 2}, {10, 20}, {100, 200}}) == std::array<double, 2>{111, 222});
static_assert(sum_of_3::dx<1>({{1, 2}, {10, 20}, {100, 200}}, {5, 6}) == std::array<double, 2>{5, 6});
static_assert(sum_of_3::dx<2>({{1, 2}, {10, 20}, {100, 200}}, {5, 6}, {}, 1) == std::array<double, 2>{6, 7});

using mean_of_2 = run<mean_of_branches, shape{2}, shape{2}>;
static_assert(mean_of_2::forward({{1, 2}, {10, 20}}) == std::array<double, 2>{5.5, 11});
static_assert(mean_of_2::dx<1>({{1, 2}, {10, 20}}, {6, 7}) == std::array<double, 2>{3, 3.5});

using difference = run<difference_of_branches, shape{2}, shape{2}>;
static_assert(difference::forward({{1, 2}, {10, 20}}) == std::array<double, 2>{-9, -18});
static_assert(difference::dx<0>({{1, 2}, {10, 20}}, {6, 7}) == std::array<double, 2>{6, 7});
static_assert(difference::dx<1>({{1, 2}, {10, 20}}, {6, 7}, {}, 1) == std::array<double, 2>{-5, -6});

using product_of_3 = run<product_of_branches, shape{2}, shape{2}, shape{2}>;
static_assert(product_of_3::forward({{2, 0}, {3, 5}, {4, 7}}) == std::array<double, 2>{24, 0});
static_assert(product_of_3::dx<0>({{2, 0}, {3, 5}, {4, 7}}, {1, 2}) == std::array<double, 2>{12, 70});
static_assert(product_of_3::dx<1>({{2, 0}, {3, 5}, {4, 7}}, {1, 2}) == std::array<double, 2>{8, 0});
static_assert(product_of_3::dx<2>({{2, 0}, {3, 5}, {4, 7}}, {1, 2}) == std::array<double, 2>{6, 0});

// Of equal inputs the first takes the whole gradient.
using largest_of_3 = run<largest_of_branches, shape{4}, shape{4}, shape{4}>;
static_assert(largest_of_3::forward({{3, 1, 2, 5}, {3, 1, 1, 6}, {2, 4, 2, 6}}) == std::array<double, 4>{3, 4, 2, 6});
static_assert(largest_of_3::dx<0>({{3, 1, 2, 5}, {3, 1, 1, 6}, {2, 4, 2, 6}}, {9, 8, 7, 6}) == std::array<double, 4>{9, 0, 7, 0});
static_assert(largest_of_3::dx<1>({{3, 1, 2, 5}, {3, 1, 1, 6}, {2, 4, 2, 6}}, {9, 8, 7, 6}) == std::array<double, 4>{0, 0, 0, 6});
static_assert(largest_of_3::dx<2>({{3, 1, 2, 5}, {3, 1, 1, 6}, {2, 4, 2, 6}}, {9, 8, 7, 6}) == std::array<double, 4>{0, 8, 0, 0});

// Channels of each pixel, branch after branch.
using stack = run<stack_of_branches, shape{1, 2, 1}, shape{1, 2, 2}>;
static_assert(stack::forward({{1, 2}, {10, 20, 30, 40}}) == std::array<double, 6>{1, 10, 20, 2, 30, 40});
static_assert(stack::dx<0>({{1, 2}, {10, 20, 30, 40}}, {1, 2, 3, 4, 5, 6}) == std::array<double, 2>{1, 4});
static_assert(stack::dx<1>({{1, 2}, {10, 20, 30, 40}}, {1, 2, 3, 4, 5, 6}) == std::array<double, 4>{2, 3, 5, 6});

using middle = run<operation_of<columns<1, 2>>, shape{2, 4}>;
static_assert(middle::out == shape{2, 2});
static_assert(middle::forward({{1, 2, 3, 4, 5, 6, 7, 8}}) == std::array<double, 4>{2, 3, 6, 7});
static_assert(middle::dx({{1, 2, 3, 4, 5, 6, 7, 8}}, {10, 20, 30, 40}) == std::array<double, 8>{0, 10, 20, 0, 0, 30, 40, 0});
static_assert(middle::dx({{1, 2, 3, 4, 5, 6, 7, 8}}, {10, 20, 30, 40}, {}, 5) ==
              std::array<double, 8>{5, 15, 25, 5, 5, 35, 45, 5});

using framed = run<operation_of<zero_padding2d<1, 0, 0, 2>>, shape{1, 2, 2}>;
static_assert(framed::out == shape{2, 4, 2});
static_assert(framed::forward({{1, 2, 3, 4}}) == std::array<double, 16>{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0});
static_assert(framed::dx({{1, 2, 3, 4}}, {9, 9, 9, 9, 9, 9, 9, 9, 5, 6, 7, 8, 9, 9, 9, 9}) == std::array<double, 4>{5, 6, 7, 8});
using left = run<operation_of<zero_padding2d<0, 0, 1, 0>>, shape{2, 1, 1}>;
static_assert(left::forward({{1, 2}}) == std::array<double, 4>{0, 1, 0, 2});

// Up-sampling repeats pixels; the gradient of a pixel is the sum over its copies.
using repeated = run<operation_of<up_sampling2d<2>>, shape{1, 2, 1}>;
static_assert(repeated::out == shape{2, 4, 1});
static_assert(repeated::forward({{1, 2}}) == std::array<double, 8>{1, 1, 2, 2, 1, 1, 2, 2});
static_assert(repeated::dx({{1, 2}}, {1, 2, 3, 4, 5, 6, 7, 8}) == std::array<double, 2>{14, 22});
static_assert(repeated::dx({{1, 2}}, {1, 2, 3, 4, 5, 6, 7, 8}, {}, 100) == std::array<double, 2>{114, 122});
using widened = run<operation_of<up_sampling2d<2, sampling_size<1, 3>>>, shape{1, 2, 2}>;
static_assert(widened::forward({{1, 2, 3, 4}}) == std::array<double, 12>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
static_assert(widened::forward<2>({{1, 2, 3, 4, 5, 6, 7, 8}}) ==
              std::array<double, 24>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6, 5, 6, 7, 8, 7, 8, 7, 8});

// Bilinear: the centres of pixels lie a quarter beside the old ones, weights are 3/4 and 1/4; the outermost pixels go on
// outwards.
using blended = run<operation_of<up_sampling2d<1, sampling_size<1, 2>, bilinear_interpolation>>, shape{1, 2, 1}>;
static_assert(blended::forward({{4, 8}}) == std::array<double, 4>{4, 5, 7, 8});
static_assert(blended::dx({{4, 8}}, {1, 2, 4, 8}) == std::array<double, 2>{3.5, 11.5});
using blended_image = run<operation_of<up_sampling2d<2, bilinear_interpolation>>, shape{2, 2, 1}>;
static_assert(blended_image::forward({{0, 4, 16, 32}}) ==
              std::array<double, 16>{0, 1, 3, 4, 4, 5.75, 9.25, 11, 12, 15.25, 21.75, 25, 16, 20, 28, 32});
