// The layers that make images larger against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("enlarging");

TEST_CASE("up_sampling2d") {
  check_layer<up_sampling2d<2>, shape{3, 5, 4}>(recorded, "up_sampling2d");
  check_layer<up_sampling2d<2, sampling_size<3, 1>>, shape{2, 3, 5}>(recorded, "up_sampling2d_3x1");
  check_layer<up_sampling2d<2, bilinear>, shape{3, 5, 4}>(recorded, "up_sampling2d_bilinear");
  check_layer<up_sampling2d<2, bilinear, sampling_size<1, 4>>, shape{3, 2, 3}>(recorded, "up_sampling2d_bilinear_1x4");
  check_layer<up_sampling2d<3, bilinear>, shape{4, 1, 7}>(recorded, "up_sampling2d_bilinear_3");
}

TEST_CASE("no recorded tensor is forgotten") { CHECK(recorded.forgotten() == ""); }
