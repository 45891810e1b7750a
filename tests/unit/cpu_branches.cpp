// Joins of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/branches.hpp>
#include <strata/cpu/reference/activations.hpp>
#include <strata/cpu/reference/branches.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using cpu_compare::number;

namespace {

/// Inputs and gradients of a join; input 1 wants no gradient if there are three.
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

template <class T>
void check_joins() {
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
