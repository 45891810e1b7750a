// Layer normalization and padding of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/layer_norm.hpp>
#include <strata/cpu/reference/layer_normalization.hpp>
#include <strata/cpu/reference/zero_padding.hpp>
#include <strata/cpu/zero_padding.hpp>

#include "cpu_compare.hpp"

using namespace strata;

namespace {

template <class T, class Op, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  CAPTURE(In.size());
  CAPTURE(sizeof(T));
  compare_with_reference<kernel<cpu, Op, P, In>, list<Op>, T, In>();
}

constexpr layer_norm_settings with(bool center, bool scale) { return {decimal(1, -3), center, scale}; }

}  // namespace

TEST_CASE_TEMPLATE("layer normalization", T, float, double) {
  check<T, layer_normalization<with(true, true)>, shape{5}>();
  check<T, layer_normalization<with(true, true)>, shape{3, 67}>();
  check<T, layer_normalization<with(false, true)>, shape{2, 2, 32}>();
  check<T, layer_normalization<with(true, false)>, shape{100}>();
  check<T, layer_normalization<with(false, false)>, shape{16}>();
}

TEST_CASE_TEMPLATE("zero padding", T, float, double) {
  check<T, zero_padding<padding_settings{1, 2, 3, 0}>, shape{4, 5, 3}>();
  check<T, zero_padding<padding_settings{2, 1, 0, 0}>, shape{2, 3, 16}>();
}
