// The layers that make images larger against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("enlarging");

TEST_CASE("up_sampling2d") {
  check_layer<up_sampling2d<2>, shape{3, 5, 4}>(recorded, "up_sampling2d");
  check_layer<up_sampling2d<2, sampling_size<3, 1>>, shape{2, 3, 5}>(recorded, "up_sampling2d_3x1");
  check_layer<up_sampling2d<2, bilinear_interpolation>, shape{3, 5, 4}>(recorded, "up_sampling2d_bilinear");
  check_layer<up_sampling2d<2, bilinear_interpolation, sampling_size<1, 4>>, shape{3, 2, 3}>(recorded,
                                                                                             "up_sampling2d_bilinear_1x4");
  check_layer<up_sampling2d<3, bilinear_interpolation>, shape{4, 1, 7}>(recorded, "up_sampling2d_bilinear_3");
}

TEST_CASE("conv2d_transpose") {
  check_layer<conv2d_transpose<5, 3>, shape{4, 5, 3}>(recorded, "conv2d_transpose");
  check_layer<conv2d_transpose<5, 4, same_padding>, shape{4, 5, 3}>(recorded, "conv2d_transpose_same");
  check_layer<conv2d_transpose<4, 3, stride<2>>, shape{4, 3, 5}>(recorded, "conv2d_transpose_stride2");
  check_layer<conv2d_transpose<19, 3, stride<2>, same_padding>, shape{4, 3, 17}>(recorded, "conv2d_transpose_stride2_same");
  check_layer<conv2d_transpose<3, 4, stride<2>, same_padding>, shape{3, 4, 2}>(recorded, "conv2d_transpose_4x4_stride2_same");
  check_layer<conv2d_transpose<3, 2, stride<2>, no_bias>, shape{4, 4, 6}>(recorded, "conv2d_transpose_2x2_stride2");
  check_layer<conv2d_transpose<2, 1, kernel_size<1, 2>, stride<2, 3>>, shape{3, 2, 3}>(recorded, "conv2d_transpose_gaps");
  check_layer<conv2d_transpose<2, 1, stride<2>, same_padding>, shape{3, 2, 3}>(recorded, "conv2d_transpose_gaps_same");
  check_layer<conv2d_transpose<2, 3, dilation<2>>, shape{4, 3, 3}>(recorded, "conv2d_transpose_dilated");
  check_layer<conv2d_transpose<16, 3, same_padding, relu>, shape{6, 7, 16}>(recorded, "conv2d_transpose_tiles");
}

TEST_CASE("no recorded tensor is forgotten") { CHECK(recorded.forgotten() == ""); }
