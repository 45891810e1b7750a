// Dense layers, normalization and padding against the recordings.
#include <strata/cpu/cpu.hpp>

#include "layer_check.hpp"

using namespace strata;
using strata::test::check_layer;

static strata::test::recording recorded("layers");

TEST_CASE("dense") {
  check_layer<dense<7>, shape{5}>(recorded, "dense");
  check_layer<dense<3, no_bias>, shape{9}>(recorded, "dense_no_bias");
  check_layer<dense<11, relu>, shape{13}>(recorded, "dense_relu");
  check_layer<dense<35>, shape{67}>(recorded, "dense_wide");
  check_layer<dense<1>, shape{1}>(recorded, "dense_single");
  // A dense layer on the last axis of (2, 3, 5) computes the same as on six samples.
  check_layer<dense<4>, shape{5}>(recorded, "dense_rank3");
}

TEST_CASE("batch_norm") {
  check_layer<batch_norm<>, shape{3, 4, 3}>(recorded, "batch_norm");
  check_layer<batch_norm<>, shape{3, 4, 3}>(recorded, "batch_norm_inference");
  check_layer<batch_norm<>, shape{7}>(recorded, "batch_norm_rank2");
  check_layer<batch_norm<>, shape{7}>(recorded, "batch_norm_rank2_inference");
  check_layer<batch_norm<momentum<0.8_r>, epsilon<0.01_r>>, shape{3, 5, 2}>(recorded, "batch_norm_settings");
  check_layer<batch_norm<no_center>, shape{3, 2, 5}>(recorded, "batch_norm_no_center");
  check_layer<batch_norm<no_scale>, shape{3, 2, 5}>(recorded, "batch_norm_no_scale");
  check_layer<batch_norm<no_center, no_scale>, shape{5}>(recorded, "batch_norm_plain");
  check_layer<batch_norm<no_center, no_scale>, shape{5}>(recorded, "batch_norm_plain_inference");
}

TEST_CASE("layer_norm") {
  check_layer<layer_norm<>, shape{7}>(recorded, "layer_norm");
  check_layer<layer_norm<>, shape{3, 5}>(recorded, "layer_norm_rank3");
  check_layer<layer_norm<>, shape{3, 2, 9}>(recorded, "layer_norm_rank4");
  check_layer<layer_norm<no_center>, shape{6}>(recorded, "layer_norm_no_center");
  check_layer<layer_norm<no_scale>, shape{6}>(recorded, "layer_norm_no_scale");
  check_layer<layer_norm<epsilon<1e-5_r>>, shape{5}>(recorded, "layer_norm_epsilon");
}

TEST_CASE("zero_padding2d") {
  check_layer<zero_padding2d<1>, shape{3, 4, 3}>(recorded, "zero_padding2d");
  check_layer<zero_padding2d<2, 1>, shape{4, 3, 2}>(recorded, "zero_padding2d_2x1");
  check_layer<zero_padding2d<1, 2, 0, 3>, shape{3, 5, 2}>(recorded, "zero_padding2d_asymmetric");
}

TEST_CASE("no recorded tensor is forgotten") {
  for (const char* kind : {"dense", "batch_norm", "layer_norm", "zero_padding2d"}) CHECK(recorded.forgotten(kind) == "");
}
