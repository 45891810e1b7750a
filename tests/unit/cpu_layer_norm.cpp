// Layer normalization, padding and columns of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/columns.hpp>
#include <strata/cpu/kernels/layer_norm.hpp>
#include <strata/cpu/kernels/zero_padding2d.hpp>
#include <strata/reference/columns.hpp>
#include <strata/reference/layer_norm.hpp>
#include <strata/reference/zero_padding2d.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <class T, class Op, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  CAPTURE(In.size());
  CAPTURE(sizeof(T));
  compare_with_reference<kernel<cpu, Op, P, In>, type_list<Op>, T, In>();
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

TEST_CASE_TEMPLATE("a row of equal elements: y is exactly beta, and the gradient of gamma exactly 0", T, float, double) {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  const auto check_on = []<class Backend, int C>(Backend, std::integral_constant<int, C>) {
    using K = kernel<Backend, layer_normalization<with(true, true)>, P, shape{C}>;
    CAPTURE(C);
    buffer<T> x(C, T(0.1)), y(C), dy(C), dgamma(C, T(1)), gamma(C), beta(C), saved(traits_of_kernel<K>.saved + 1),
        scratch(traits_of_kernel<K>.scratch + 1);
    for (int c = 0; c < C; ++c) dy.data[c] = T(c - 30), gamma.data[c] = T(2), beta.data[c] = T(c);
    operands<T> o;
    o.count = 1, o.x[0] = x.data, o.y = y.data, o.dy = dy.data, o.w[0] = gamma.data, o.w[1] = beta.data;
    o.dw[0] = dgamma.data, o.saved = saved.data, o.scratch = scratch.data;
    K::forward(o);
    K::backward(o);
    int others = 0;
    for (int c = 0; c < C; ++c) others += y.data[c] != beta.data[c] || dgamma.data[c] != 0;
    CHECK(others == 0);
  };
  const auto check_widths = [&](auto backend) {
    check_on(backend, std::integral_constant<int, 7>{}), check_on(backend, std::integral_constant<int, 64>{});
    check_on(backend, std::integral_constant<int, 67>{}), check_on(backend, std::integral_constant<int, 1024>{});
  };
  check_widths(cpu{}), check_widths(reference{});
}

TEST_CASE_TEMPLATE("columns", T, float, double) {
  check<T, column_slice<column_settings{.first = 0, .count = 3}>, shape{8}>();
  check<T, column_slice<column_settings{.first = 3, .count = 17}>, shape{2, 3, 21}>();
  check<T, column_slice<column_settings{.first = 4, .count = 1}>, shape{5}>();
}

TEST_CASE_TEMPLATE("zero padding", T, float, double) {
  check<T, zero_padding<padding_settings{1, 2, 3, 0}>, shape{4, 5, 3}>();
  check<T, zero_padding<padding_settings{2, 1, 0, 0}>, shape{2, 3, 16}>();
  check<T, zero_padding<padding_settings{-1, -2, 0, 0}>, shape{5, 3, 16}>();
  check<T, zero_padding<padding_settings{-1, 0, -2, -1}>, shape{4, 5, 3}>();
  check<T, zero_padding<padding_settings{-1, 2, 1, -1}>, shape{4, 5, 3}>();
}
