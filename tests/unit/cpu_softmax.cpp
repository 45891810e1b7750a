// Softmax of the cpu backend, alone and with crossentropies, against the reference backend in double precision.
#include <strata/reference/activations.hpp>

#include "cpu_compare_losses.hpp"

using namespace strata;
using namespace strata::core;
using compare_losses::check;

TEST_CASE_TEMPLATE("crossentropies of classes", T, float, double) {
  check<T, sparse_categorical_crossentropy<>, 10, softmax>();
  check<T, categorical_crossentropy<>, 100, softmax>();
  check<T, categorical_crossentropy<label_smoothing<decimal(1, -1)>>, 33, softmax>();
  check<T, sparse_categorical_crossentropy<from_logits>, 10>();
  check<T, categorical_crossentropy<from_logits>, 65>();
}

TEST_CASE_TEMPLATE("softmax", T, float, double) {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  compare_with_reference<kernel<cpu, softmax, P, shape{10}>, type_list<softmax>, T, shape{10}>();
  compare_with_reference<kernel<cpu, softmax, P, shape{3, 100}>, type_list<softmax>, T, shape{3, 100}>();
  // Nothing overflows, and elements outside the row have no effect.
  const T x[3] = {T(-5000), T(-5001), T(-6000)};
  T y[3];
  operands<T> o;
  o.count = 1, o.x[0] = x, o.y = y;
  kernel<cpu, softmax, P, shape{3}>::forward(o);
  CHECK(y[0] == doctest::Approx(1 / (1 + std::exp(-1.))));
  CHECK(y[2] == 0);
}
