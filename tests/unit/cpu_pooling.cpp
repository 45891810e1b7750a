// Pooling of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/pooling.hpp>
#include <strata/reference/pooling.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <class T, class Op, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  INFO(In[0], "x", In[1], "x", In[2], " ", Op::name, " bytes ", sizeof(T));
  compare_with_reference<kernel<cpu, Op, P, In>, type_list<Op>, T, In>();
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }

}  // namespace

TEST_CASE_TEMPLATE("max pooling", T, float, double) {
  check<T, max_pooling<pool_settings{2, 2}>, image(6, 7, 16)>();
  check<T, max_pooling<pool_settings{3, 3, 2, 2, true}>, image(7, 8, 19)>();
  check<T, max_pooling<pool_settings{2, 2, 2, 2, true}>, image(5, 7, 19)>();  // the last windows are clipped
  check<T, max_pooling<pool_settings{2, 3, 1, 4}>, image(5, 9, 5)>();
  check<T, max_pooling<pool_settings{12, 12, 1, 1, true}>, image(13, 5, 4)>();  // too many taps for bytes
  check<T, max_pooling<pool_settings{3, 3, 3, 4}>, image(9, 8, 20)>();
  check<T, max_pooling<pool_settings{3, 3, 3, 4}>, image(9, 7, 20)>();  // windows do not meet, but the last one ends at the edge
  check<T, global_max_pool2d, image(5, 4, 21)>();
}

TEST_CASE_TEMPLATE("average pooling", T, float, double) {
  check<T, average_pooling<pool_settings{2, 2}>, image(6, 7, 16)>();
  check<T, average_pooling<pool_settings{3, 3, 2, 2, true}>, image(7, 8, 19)>();
  check<T, average_pooling<pool_settings{2, 2, 2, 2, true}>, image(5, 7, 19)>();
  check<T, average_pooling<pool_settings{2, 3, 1, 4}>, image(5, 9, 5)>();
  check<T, global_average_pool2d, image(5, 5, 21)>();
}

TEST_CASE_TEMPLATE("the first of equal pixels wins, and nan over all", T, float, double) {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using K = kernel<cpu, max_pooling<pool_settings{2, 2}>, P, shape{2, 6, 4}>;
  constexpr int C = 4;
  const T numbers[12] = {2, 2, 1, T(NAN), -3, -1, 2, 1, 5, 7, -1, -2}, gradients[3] = {3, 4, 5};
  T x[12 * C], y[3 * C], dy[3 * C], dx[12 * C], saved[traits_of_kernel<K>.saved];
  for (int i = 0; i < 12 * C; ++i) x[i] = numbers[i / C];
  for (int i = 0; i < 3 * C; ++i) dy[i] = gradients[i / C];
  operands<T> o;
  o.count = 1, o.x[0] = x, o.y = y, o.dy = dy, o.dx[0] = dx, o.saved = saved;
  K::forward(o);
  K::backward(o);
  const T expected[12] = {3, 0, 0, 4, 0, 5};
  for (int c = 0; c < C; ++c) {
    CHECK(y[c] == 2);
    CHECK(std::isnan(y[C + c]));
    CHECK(y[2 * C + c] == -1);
    for (int i = 0; i < 12; ++i) CHECK(dx[i * C + c] == expected[i]);
  }
}
