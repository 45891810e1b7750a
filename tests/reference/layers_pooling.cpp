// Pooling against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("layers");

TEST_CASE("max_pool2d") {
  check_layer<max_pool2d<2>, shape{6, 8, 3}>(recorded, "max_pool2d");
  check_layer<max_pool2d<2>, shape{7, 9, 3}>(recorded, "max_pool2d_odd");
  check_layer<max_pool2d<3>, shape{9, 7, 2}>(recorded, "max_pool2d_3");
  check_layer<max_pool2d<3, stride<2>>, shape{9, 8, 3}>(recorded, "max_pool2d_overlapping");
  check_layer<max_pool2d<2, stride<3>>, shape{8, 9, 2}>(recorded, "max_pool2d_gaps");
  check_layer<max_pool2d<2, pool_size<2, 3>, stride<1, 2>>, shape{6, 7, 2}>(recorded, "max_pool2d_2x3");
  check_layer<max_pool2d<2, same_padding>, shape{5, 7, 3}>(recorded, "max_pool2d_same");
  check_layer<max_pool2d<3, stride<2>, same_padding>, shape{7, 9, 2}>(recorded, "max_pool2d_3_stride2_same_odd");
  check_layer<max_pool2d<3, stride<2>, same_padding>, shape{8, 6, 2}>(recorded, "max_pool2d_3_stride2_same_even");
  check_layer<max_pool2d<3, stride<1>, same_padding>, shape{5, 6, 2}>(recorded, "max_pool2d_3_stride1_same");
  check_layer<max_pool2d<3, stride<2>>, shape{6, 6, 2}>(recorded, "max_pool2d_ties");
}

TEST_CASE("average_pool2d") {
  check_layer<average_pool2d<2>, shape{6, 8, 3}>(recorded, "average_pool2d");
  check_layer<average_pool2d<2>, shape{7, 9, 3}>(recorded, "average_pool2d_odd");
  check_layer<average_pool2d<3, stride<2>>, shape{9, 8, 3}>(recorded, "average_pool2d_overlapping");
  check_layer<average_pool2d<2, same_padding>, shape{5, 7, 3}>(recorded, "average_pool2d_same");
  check_layer<average_pool2d<3, stride<1>, same_padding>, shape{5, 6, 2}>(recorded, "average_pool2d_3_stride1_same");
  check_layer<average_pool2d<3, stride<2>, same_padding>, shape{8, 6, 2}>(recorded, "average_pool2d_3_stride2_same_even");
  check_layer<average_pool2d<2, pool_size<2, 3>, stride<1, 2>, same_padding>, shape{5, 7, 2}>(recorded,
                                                                                              "average_pool2d_2x3_same");
}

TEST_CASE("global_average_pool2d") {
  check_layer<global_average_pool2d, shape{5, 7, 4}>(recorded, "global_average_pool2d");
  check_layer<global_average_pool2d, shape{3, 4, 5}>(recorded, "global_average_pool2d_keepdims");
}

TEST_CASE("no recorded tensor is forgotten") {
  for (const char* kind : {"max_pool2d", "average_pool2d", "global_average_pool2d"}) CHECK(recorded.forgotten(kind) == "");
}
