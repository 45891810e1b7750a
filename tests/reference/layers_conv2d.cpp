// Convolutions of every kernel size against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("layers");

TEST_CASE("conv2d") {
  check_layer<conv2d<5, 3>, shape{7, 9, 3}>(recorded, "conv2d");
  check_layer<conv2d<5, 3, same_padding>, shape{7, 9, 3}>(recorded, "conv2d_same");
  check_layer<conv2d<3, 3, no_bias>, shape{6, 5, 2}>(recorded, "conv2d_no_bias");
  check_layer<conv2d<4, 3, relu>, shape{6, 7, 2}>(recorded, "conv2d_relu");
  check_layer<conv2d<9, 3>, shape{11, 13, 1}>(recorded, "conv2d_one_channel");
  check_layer<conv2d<19, 3>, shape{5, 6, 17}>(recorded, "conv2d_many_channels");
}

TEST_CASE("conv2d of other kernel sizes") {
  check_layer<conv2d<7, 1>, shape{5, 4, 6}>(recorded, "conv2d_1x1");
  check_layer<conv2d<3, 5>, shape{9, 8, 2}>(recorded, "conv2d_5x5");
  check_layer<conv2d<2, 5, same_padding>, shape{7, 6, 3}>(recorded, "conv2d_5x5_same");
  check_layer<conv2d<3, 3, kernel_size<3, 5>, same_padding>, shape{8, 9, 2}>(recorded, "conv2d_3x5");
  check_layer<conv2d<4, 2, same_padding>, shape{5, 7, 3}>(recorded, "conv2d_2x2_same");
  check_layer<conv2d<3, 4, same_padding>, shape{7, 6, 2}>(recorded, "conv2d_4x4_same");
  check_layer<conv2d<3, 7, same_padding>, shape{4, 5, 2}>(recorded, "conv2d_7x7_same_small");
}

TEST_CASE("no recorded tensor is forgotten") {
  // layers_conv2d_strides.cpp checks these.
  for (const char* other :
       {"conv2d_stride", "conv2d_1x1_stride", "conv2d_4x4_stride", "conv2d_dilation", "conv2d_groups", "conv2d_depthwise"})
    recorded.leave_out_cases(other);
  CHECK(recorded.forgotten("conv2d") == "");
}
