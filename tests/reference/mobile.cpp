// Layers and activations of networks for small devices against the recordings.
#include <strata/cpu/cpu.hpp>
#include <strata/layers/activation.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/rescaling.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("mobile");

TEST_CASE("depthwise_conv2d") {
  check_layer<depthwise_conv2d<3>, shape{6, 7, 5}>(recorded, "depthwise_conv2d");
  check_layer<depthwise_conv2d<3, same_padding, relu>, shape{6, 7, 17}>(recorded, "depthwise_conv2d_same");
  check_layer<depthwise_conv2d<3, stride<2>, same_padding>, shape{7, 8, 3}>(recorded, "depthwise_conv2d_stride2_same");
  check_layer<depthwise_conv2d<3, kernel_size<2, 3>, depth_multiplier<2>, no_bias>, shape{6, 5, 3}>(
      recorded, "depthwise_conv2d_two_filters");
  check_layer<depthwise_conv2d<3, dilation<2>, depth_multiplier<3>>, shape{7, 8, 4}>(recorded, "depthwise_conv2d_dilated");
}

TEST_CASE("activations in straight pieces") {
  check_layer<activation<hard_sigmoid>, shape{13}>(recorded, "hard_sigmoid");
  check_layer<activation<hard_silu>, shape{13}>(recorded, "hard_silu");
}

TEST_CASE("rescaling") { check_layer<rescaling<-0.375_r, 1.25_r>, shape{13}>(recorded, "rescaling"); }

TEST_CASE("cropping2d") { check_layer<cropping2d<1, 0, 2, 1>, shape{5, 6, 3}>(recorded, "cropping2d"); }

TEST_CASE("no recorded tensor is forgotten") { CHECK(recorded.forgotten() == ""); }
