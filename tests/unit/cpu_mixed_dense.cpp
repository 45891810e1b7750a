// Dense layers with bfloat16 products.
#include <doctest/doctest.h>

#include <strata/cpu/mixed/dense.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/dense.hpp>

#include "cpu_mixed.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <int K, int N, class Activation = linear, bool Bias = true>
void check() {
  constexpr dense_settings S{N, Bias};
  CAPTURE(K);
  CAPTURE(N);
  using ops = std::conditional_t<std::is_same_v<Activation, linear>, type_list<affine<S>>, type_list<affine<S>, Activation>>;
  cpu_mixed::compare<simd::mixed_dense<simd::bf16, S, Activation, shape{K}>,
                     simd::mixed_dense<simd::bf16_by_software, S, Activation, shape{K}>, shape{K}>(
      ops{}, 1, std::is_same_v<Activation, linear>);
}

}  // namespace

TEST_CASE("mixed dense layers") {
  check<64, 32>();
  check<1, 3>();
  check<35, 17, relu, false>();
  check<100, 65, relu>();
}

TEST_CASE("small layers stay in float") {
  constexpr dense_settings ten{10}, many{64};
  using small = kernel<cpu, affine<ten>, precision::mixed_bf16, shape{64}>;
  using large = kernel<cpu, affine<many>, precision::mixed_bf16, shape{1600}>;
  CHECK(std::is_base_of_v<simd::dense_kernel<ten, linear, precision::mixed_bf16, shape{64}>, small>);
  CHECK(std::is_base_of_v<simd::mixed_dense<simd::bf16, many, linear, shape{1600}>, large>);
}
