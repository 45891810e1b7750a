// The layer normalization of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <strata/cpu/kernels/normalization.hpp>
#include <strata/reference/normalization.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using cpu_compare::difference;
using cpu_compare::number;

namespace {

template <class T, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, normalization, P, In>;
  using R = kernel<reference, normalization, precision::f64, In>;
  constexpr int count = 5, size = count * In.size(), C = In.last();
  CAPTURE(C);
  std::vector<double> x, dy, y(size), dx(size), mean, variance;
  for (int i = 0; i < size; ++i) x.push_back(number(1, i)), dy.push_back(number(2, i));
  for (int c = 0; c < C; ++c) mean.push_back(number(3, c)), variance.push_back(c % 7 == 3 ? 0 : 0.5 + number(4, c) / 4);
  operands<double> r;
  r.count = count, r.x[0] = x.data(), r.y = y.data(), r.dy = dy.data(), r.dx[0] = dx.data();
  r.w[0] = mean.data(), r.w[1] = variance.data();
  R::forward(r);
  R::backward(r);

  buffer<T> cx(size), cdy(size), cy(size, T(NAN)), cdx(size, T(NAN)), cmean(C), cvariance(C),
      derived(traits_of_kernel<K>.derived, T(NAN));
  const auto copied = [](const std::vector<double>& from, buffer<T>& to) {
    std::ranges::transform(from, to.data, [](double v) { return T(v); });
  };
  copied(x, cx), copied(dy, cdy), copied(mean, cmean), copied(variance, cvariance);
  operands<T> o;
  o.count = count, o.x[0] = cx.data, o.y = cy.data, o.dy = cdy.data, o.dx[0] = cdx.data;
  o.w[0] = cmean.data, o.w[1] = cvariance.data, o.derived = derived.data;
  K::derive(o.w, derived.data);
  K::forward(o);
  K::backward(o);
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-15;
  CHECK(difference(cy.data, y) < tolerance);
  CHECK(difference(cdx.data, dx) < tolerance);
  o.adds_dx[0] = true;
  K::backward(o);
  for (double& d : dx) d *= 2;
  CHECK(difference(cdx.data, dx) < tolerance);
}

}  // namespace

TEST_CASE_TEMPLATE("normalization of one feature, few and many, also of those without variance", T, float, double) {
  check<T, shape{1}>();
  check<T, shape{5, 3, 3}>();
  check<T, shape{2, 17}>();
  check<T, shape{67}>();
  check<T, shape{128}>();
}
