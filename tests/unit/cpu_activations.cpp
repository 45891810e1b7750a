// Activations of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/activations.hpp>
#include <strata/reference/activations.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

constexpr shape In{37, 5};

/// Checks inputs of all magnitudes, then special ones: each value and each slope is close to the formula in double.
template <class T, class A>
void check_digits() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, A, P, In>;
  CAPTURE(A::name);
  CAPTURE(sizeof(T));
  const double unit = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  const double rounded = std::is_same_v<A, gelu_approximate> ? unit : 0;  // its formula in double cancels in the left tail
  std::vector<T> x(std::size_t(In.size())), y(x.size()), dx(x.size()), dy(x.size(), T(1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(cpu_compare::number(1, int(i)) * std::pow(10., double(int(i) % 8) - 6));
  x[1] = 0, x[2] = T(87), x[3] = T(-87), x[4] = T(-0.6931472), x[5] = T(1);
  operands<T> o;
  o.count = 1, o.x[0] = x.data(), o.y = y.data(), o.dy = dy.data(), o.dx[0] = dx.data();
  K::forward(o);
  K::backward(o);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    const double exact = activation_function<A>::value(double(x[i])), size = std::abs(double(x[i]));
    // e^x has the error of x, and precision is lost where the result is much smaller than the input.
    CHECK(std::abs(double(y[i]) - exact) <= unit * (8 + size * size) * std::abs(exact) + unit * 0x1p-20 + rounded * size);
    const double slope = activation_function<A>::derivative(double(x[i]), double(y[i]));
    CHECK(std::abs(double(dx[i]) - slope) <= unit * (8 + size * size));
  }
  x[7] = T(NAN);
  K::forward(o);
  CHECK(std::isnan(y[7]));
}

template <class T, class A>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  compare_with_reference<kernel<cpu, A, P, In>, type_list<A>, T, In>();
  check_digits<T, A>();
}

template <class T>
void check_all() {
  check<T, relu>();
  check<T, leaky_relu<>>();
  check<T, elu<decimal(3)>>();
  check<T, selu>();
  check<T, sigmoid>();
  check<T, tanh_activation>();
  check<T, softplus>();
  check<T, softsign>();
  check<T, silu>();
  check<T, hard_sigmoid>();
  check<T, hard_silu>();
  check<T, scale_and_offset<-0.375_r, 1.25_r>>();
  check<T, gelu>();
  check<T, gelu_approximate>();
}

}  // namespace

TEST_CASE("activations, float") { check_all<float>(); }
TEST_CASE("activations, double") { check_all<double>(); }

TEST_CASE_TEMPLATE("logarithm", T, float, double) {
  for (int i = 0; i < 1000; ++i) {
    const T x = T(std::exp(cpu_compare::number(1, i) * 20));
    const double y = double(simd::log<T>(simd::broadcast(x))[0]), exact = std::log(double(x));
    CAPTURE(x);
    CHECK(std::abs(y - exact) <= (sizeof(T) == 4 ? 0x1p-22 : 0x1p-51) * std::max(std::abs(exact), 1e-3));
  }
  CHECK(std::isnan(simd::log<T>(simd::broadcast(T(NAN)))[0]));
}
