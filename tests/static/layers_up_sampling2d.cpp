// up_sampling2d: shapes, options, what it refuses, and which pixels are mixed.
#include "layer_shapes.hpp"
#include <strata/layers/activations.hpp>
#include <strata/layers/up_sampling2d.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<up_sampling2d<2>>("up_sampling2d", "UpSampling2D"));
static_assert(gives<up_sampling2d<>>({7, 5, 3}, {14, 10, 3}) &&
              gives<up_sampling2d<3, bilinear_interpolation>>({7, 5, 3}, {21, 15, 3}));
static_assert(gives<up_sampling2d<2, sampling_size<1, 4>>>({7, 5, 3}, {7, 20, 3}) &&
              parameter_count<up_sampling2d<2>>({7, 5, 3}) == 0);
static_assert(std::is_same_v<operations_of<up_sampling2d<2, bilinear_interpolation, sampling_size<2, 3>>>,
                             operations_of<up_sampling2d<5, sampling_size<2, 3>, bilinear_interpolation>>>);
static_assert(refuses<up_sampling2d<2>>({7}, reasons::up_sampling2d_takes_height_width_channels));
static_assert(refuses<up_sampling2d<0>>({7, 5, 3}, reasons::up_sampling2d_size_must_be_at_least_1));
static_assert(misused<up_sampling2d<2, relu>>(0, reasons::the_layer_takes_no_activation));
static_assert(misused<up_sampling2d<2, same_padding>>(0, reasons::the_layer_does_not_know_this_option));

constexpr bool at(detail::blended_pixel p, int low, int high, double weight) {
  return p.low == low && p.high == high && p.weight == weight;
}
static_assert(at(detail::blended_pixel::nearest(5, 3), 1, 1, 0));
static_assert(at(detail::blended_pixel::bilinear(0, 2, 3), 0, 0, 0.75) &&
              at(detail::blended_pixel::bilinear(1, 2, 3), 0, 1, 0.25));
static_assert(at(detail::blended_pixel::bilinear(2, 2, 3), 0, 1, 0.75) &&
              at(detail::blended_pixel::bilinear(5, 2, 3), 2, 2, 0.25));
static_assert(at(detail::blended_pixel::bilinear(4, 3, 2), 1, 1, 0) && at(detail::blended_pixel::bilinear(1, 3, 2), 0, 1, 0));
