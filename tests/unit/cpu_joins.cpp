// Joins of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/concat.hpp>
#include <strata/cpu/kernels/elementwise_join.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/concat.hpp>
#include <strata/reference/elementwise_join.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;
using cpu_compare::number;

namespace {

/// Inputs and gradients of a join. If there are three inputs, input 1 has no gradient.
template <class T, shape... In>
struct join_data {
  static constexpr int branches = sizeof...(In), sizes[] = {In.size()...};
  int count, out;
  std::vector<std::vector<T>> x, dx;
  std::vector<T> y, dy;
  operands<T> o;

  join_data(int samples, int size, bool adds)
      : count(samples), out(size), y(std::size_t(count * out)), dy(std::size_t(count * out)) {
    for (int i = 0; i < count * out; ++i) dy[std::size_t(i)] = T(number(9, i));
    for (int k = 0; k < branches; ++k) {
      x.emplace_back(std::size_t(count * sizes[k])), dx.emplace_back(std::size_t(count * sizes[k]), T(adds ? 1 : NAN));
      for (int i = 0; i < count * sizes[k]; ++i) x.back()[std::size_t(i)] = T(number(1 + std::uint64_t(k), i));
      o.x[k] = x.back().data(), o.dx[k] = k == 1 && branches == 3 ? nullptr : dx.back().data(), o.adds_dx[k] = adds;
    }
    o.count = count, o.y = y.data(), o.dy = dy.data();
  }
};

template <class T, class Join, class A, shape... In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, std::conditional_t<std::is_void_v<A>, Join, fused<Join, A>>, P, In...>;
  constexpr shape in[] = {In...};
  const shape out = Join::output_shape(std::span<const shape>(in)).value;
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  for (const int count : {1, 5, 16})
    for (const bool adds : {false, true}) {
      CAPTURE(count);
      join_data<double, In...> expected(count, out.size(), adds);
      kernel<reference, Join, precision::f64, In...>::forward(expected.o);
      if constexpr (!std::is_void_v<A>) {
        std::vector<double> z = expected.y;
        operands<double> o;
        o.count = count, o.x[0] = z.data(), o.y = expected.y.data(), o.dy = expected.dy.data(), o.dx[0] = z.data();
        using activation = kernel<reference, A, precision::f64, in[0]>;
        activation::forward(o);
        activation::backward(o);
        expected.dy = z;
      }
      kernel<reference, Join, precision::f64, In...>::backward(expected.o);

      join_data<T, In...> data(count, out.size(), adds);
      K::forward(data.o);
      CHECK(cpu_compare::difference(data.y.data(), expected.y) < tolerance);
      K::backward(data.o);
      for (std::size_t k = 0; k < sizeof...(In); ++k)
        if (data.o.dx[k]) CHECK(cpu_compare::difference(data.dx[k].data(), expected.dx[k]) < tolerance);
    }
}

/// Checks that results have the bits of the reference in the same precision, also with ties.
template <class T, class Join, shape... In>
void check_bits() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  join_data<T, In...> expected(7, join_data<T, In...>::sizes[0], false), data(7, join_data<T, In...>::sizes[0], false);
  for (auto* d : {&expected, &data})
    for (std::size_t i = 0; i < d->x[0].size(); i += 3) d->x[1][i] = d->x[0][i];
  kernel<reference, Join, P, In...>::forward(expected.o);
  kernel<reference, Join, P, In...>::backward(expected.o);
  kernel<cpu, Join, P, In...>::forward(data.o);
  kernel<cpu, Join, P, In...>::backward(data.o);
  CHECK(data.y == expected.y);
  for (std::size_t k = 0; k < sizeof...(In); ++k)
    if (data.o.dx[k]) CHECK(data.dx[k] == expected.dx[k]);
}

template <class T>
void check_joins() {
  check<T, mean_of_branches, void, shape{9}, shape{9}, shape{9}>();
  check<T, mean_of_branches, relu, shape{3, 3, 17}, shape{3, 3, 17}>();
  check<T, difference_of_branches, void, shape{3, 3, 17}, shape{3, 3, 17}>();
  check<T, difference_of_branches, relu, shape{9}, shape{9}>();
  check<T, product_of_branches, void, shape{3, 3, 17}, shape{3, 3, 17}>();
  check<T, product_of_branches, relu, shape{9}, shape{9}, shape{9}>();
  check<T, largest_of_branches, void, shape{3, 3, 17}, shape{3, 3, 17}>();
  check<T, largest_of_branches, relu6, shape{9}, shape{9}, shape{9}>();
  check_bits<T, sum_of_branches, shape{3, 17}, shape{3, 17}, shape{3, 17}>();
  check_bits<T, mean_of_branches, shape{3, 17}, shape{3, 17}, shape{3, 17}>();
  check_bits<T, difference_of_branches, shape{3, 17}, shape{3, 17}>();
  check_bits<T, product_of_branches, shape{3, 17}, shape{3, 17}, shape{3, 17}>();
  check_bits<T, largest_of_branches, shape{3, 17}, shape{3, 17}, shape{3, 17}>();
  check<T, sum_of_branches, void, shape{3}, shape{3}>();
  check<T, sum_of_branches, relu, shape{3, 3, 17}, shape{3, 3, 17}>();
  check<T, sum_of_branches, relu6, shape{40}, shape{40}, shape{40}>();
  check<T, stack_of_branches, void, shape{2, 3, 16}, shape{2, 3, 5}, shape{2, 3, 33}>();
  check<T, stack_of_branches, void, shape{100}, shape{7}>();
  check<T, stack_of_branches, void, shape{9, 2}>();
}

}  // namespace

TEST_CASE("joins, float") { check_joins<float>(); }
TEST_CASE("joins, double") { check_joins<double>(); }

TEST_CASE("two branches that end in the same array") {
  using K = kernel<cpu, sum_of_branches, precision::f32, shape{3}, shape{3}>;
  const float x[3] = {1, 2, 3}, dy[3] = {4, 5, 6};
  float y[3], dx[3] = {NAN, NAN, NAN};
  operands<float> o;
  o.count = 1, o.x[0] = o.x[1] = x, o.y = y, o.dy = dy, o.dx[0] = o.dx[1] = dx, o.adds_dx[1] = true;
  K::forward(o);
  K::backward(o);
  for (int i = 0; i < 3; ++i) CHECK((y[i] == 2 * x[i] && dx[i] == 2 * dy[i]));
}

TEST_CASE("maximum hands on what is not a number") {
  using K = kernel<cpu, largest_of_branches, precision::f32, shape{3}, shape{3}, shape{3}>;
  const float a[3] = {NAN, 1, 2}, b[3] = {1, NAN, 2}, c[3] = {3, 3, NAN};
  float y[3];
  operands<float> o;
  o.count = 1, o.x[0] = a, o.x[1] = b, o.x[2] = c, o.y = y;
  K::forward(o);
  for (const float v : y) CHECK(std::isnan(v));
}

TEST_CASE_TEMPLATE("of equal inputs of maximum the first one gets the gradient", T, float, double) {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, largest_of_branches, P, shape{21}, shape{21}, shape{21}>;
  join_data<T, shape{21}, shape{21}, shape{21}> d(1, 21, false);
  d.o.dx[1] = d.dx[1].data();
  const T equal[7][3] = {{1, 1, 0}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}};
  for (std::size_t i = 0; i < 21; ++i)
    for (std::size_t k = 0; k < 3; ++k) d.x[k][i] = equal[i % 7][k];
  K::forward(d.o);
  K::backward(d.o);
  const std::size_t first[7] = {0, 0, 1, 0, 2, 1, 0};
  for (std::size_t i = 0; i < 21; ++i) {
    CHECK(d.y[i] == 1);
    for (std::size_t k = 0; k < 3; ++k) CHECK(d.dx[k][i] == (k == first[i % 7] ? d.dy[i] : 0));
  }
}
