// Convolutions with strides, dilation and groups against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("layers");

TEST_CASE("strides") {
  check_layer<conv2d<4, 3, stride<2>>, shape{8, 11, 3}>(recorded, "conv2d_stride2");
  check_layer<conv2d<4, 3, stride<2>, same_padding>, shape{7, 9, 3}>(recorded, "conv2d_stride2_same_odd");
  check_layer<conv2d<4, 3, stride<2>, same_padding>, shape{8, 10, 3}>(recorded, "conv2d_stride2_same_even");
  check_layer<conv2d<3, 3, stride<3>, same_padding>, shape{10, 11, 2}>(recorded, "conv2d_stride3_same");
  check_layer<conv2d<3, 3, kernel_size<3, 2>, stride<2, 1>>, shape{9, 7, 2}>(recorded, "conv2d_stride_2x1");
  check_layer<conv2d<4, 1, stride<2>, same_padding>, shape{7, 8, 3}>(recorded, "conv2d_1x1_stride2_same");
  check_layer<conv2d<3, 4, stride<2>, same_padding>, shape{7, 8, 2}>(recorded, "conv2d_4x4_stride2_same");
}

TEST_CASE("dilation") {
  check_layer<conv2d<4, 3, dilation<2>>, shape{9, 8, 3}>(recorded, "conv2d_dilation2");
  check_layer<conv2d<4, 3, dilation<2>, same_padding>, shape{7, 6, 3}>(recorded, "conv2d_dilation2_same");
  check_layer<conv2d<3, 2, dilation<2>, same_padding>, shape{6, 7, 2}>(recorded, "conv2d_dilation2_2x2_same");
}

TEST_CASE("groups") {
  check_layer<conv2d<6, 3, channel_groups<2>>, shape{7, 6, 4}>(recorded, "conv2d_groups2");
  check_layer<conv2d<6, 3, channel_groups<2>, stride<2>, same_padding>, shape{7, 8, 4}>(recorded, "conv2d_groups2_stride2_same");
  check_layer<conv2d<5, 3, channel_groups<5>, same_padding>, shape{6, 7, 5}>(recorded, "conv2d_depthwise");
}

TEST_CASE("no recorded tensor is forgotten") {
  for (const char* these :
       {"conv2d_stride", "conv2d_1x1_stride", "conv2d_4x4_stride", "conv2d_dilation", "conv2d_groups", "conv2d_depthwise"})
    CHECK(recorded.forgotten(these) == "");
}
