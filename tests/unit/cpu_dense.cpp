// Dense layers of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/dense.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/dense.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <class T, int K, int N, class Activation = linear, bool Bias = true>
void check() {
  constexpr dense_settings S{N, Bias};
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  CAPTURE(K);
  CAPTURE(N);
  CAPTURE(sizeof(T));
  if constexpr (std::is_same_v<Activation, linear>)
    compare_with_reference<kernel<cpu, affine<S>, P, shape{K}>, type_list<affine<S>>, T, shape{K}>();
  else
    compare_with_reference<kernel<cpu, fused<affine<S>, Activation>, P, shape{K}>, type_list<affine<S>, Activation>, T,
                           shape{K}>();
}

template <class T>
void check_shapes() {
  check<T, 1, 1>();
  check<T, 3, 10>();
  check<T, 17, 33>();
  check<T, 64, 10, softsign>();
  check<T, 70, 64, relu>();
  check<T, 5, 100, leaky_relu<>, false>();
  check<T, 130, 129, tanh_activation>();
  check<T, 33, 17, sigmoid>();
  check<T, 40, 48, relu6>();
  check<T, 24, 40, hard_sigmoid>();
  check<T, 70, 300, relu>();
}

}  // namespace

TEST_CASE("dense layers, float") { check_shapes<float>(); }
TEST_CASE("dense layers, double") { check_shapes<double>(); }
