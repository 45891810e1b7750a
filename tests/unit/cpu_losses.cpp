// Losses of the cpu backend that are functions over elements or rows, against the reference backend in double precision.
#include <cmath>
#include <limits>
#include <strata/cpu/kernels/row_losses.hpp>
#include <strata/losses/binary_focal_crossentropy.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/hinge.hpp>
#include <strata/losses/kl_divergence.hpp>
#include <strata/losses/log_cosh.hpp>
#include <strata/losses/mean_absolute_percentage_error.hpp>
#include <strata/losses/mean_squared_logarithmic_error.hpp>
#include <strata/losses/poisson.hpp>

#include "cpu_compare_losses.hpp"

using namespace strata;
using namespace strata::core;
using compare_losses::check;

TEST_CASE_TEMPLATE("means over elements", T, float, double) {
  check<T, mean_squared_error, 1>();
  check<T, mean_squared_error, 100>();
  check<T, mean_absolute_error, 37>();
  check<T, huber<decimal(5, -1)>, 37>();
  check<T, binary_crossentropy<>, 67>();
  check<T, binary_crossentropy<from_logits, label_smoothing<decimal(1, -1)>>, 67>();
  check<T, binary_crossentropy<>, 784, sigmoid>();
  check<T, binary_crossentropy<label_smoothing<decimal(1, -1)>>, 5, sigmoid>();
}

TEST_CASE_TEMPLATE("other functions over elements", T, float, double) {
  check<T, hinge, 37>();
  check<T, squared_hinge, 37>();
  check<T, log_cosh, 67>();
  check<T, mean_absolute_percentage_error, 37>();
  check<T, mean_squared_logarithmic_error, 37>();
  check<T, poisson, 67>();
  check<T, kl_divergence, 67>();
  check<T, binary_focal_crossentropy<>, 67>();
  check<T, binary_focal_crossentropy<from_logits, focal_gamma<decimal(15, -1)>>, 67>();
  check<T, binary_focal_crossentropy<apply_class_balancing, label_smoothing<decimal(1, -1)>>, 5>();
}

TEST_CASE_TEMPLATE("functions of rows", T, float, double) {
  check<T, cosine_similarity, 5>();
  check<T, cosine_similarity, 67>();
  check<T, categorical_hinge, 10>();
  check<T, categorical_hinge, 67>();
  check<T, categorical_focal_crossentropy<>, 10>();
  check<T, categorical_focal_crossentropy<label_smoothing<decimal(1, -1)>, focal_gamma<decimal(15, -1)>>, 67>();
  check<T, categorical_focal_crossentropy<from_logits>, 37>();
}

TEST_CASE_TEMPLATE("a class of logit -infinity that the truth excludes", Backend, cpu, reference) {
  // Its probability is 0, and 0 * log 0 counts as 0.
  using K = kernel<Backend, categorical_crossentropy<from_logits>, precision::f32, shape{3}>;
  float x[3] = {0, -std::numeric_limits<float>::infinity(), 0}, truth[3] = {1, 0, 0}, y[3], dx[3],
        scratch[traits_of_kernel<K>.scratch + 1];
  double loss[2] = {};
  operands<float> o;
  o.count = 1, o.x[0] = x, o.y = y, o.targets = truth, o.loss = loss, o.dx[0] = dx, o.scratch = scratch;
  K::forward(o);
  K::backward(o);
  CHECK(loss[0] == doctest::Approx(std::log(2)));
  CHECK(dx[0] == doctest::Approx(-0.5));
  CHECK(dx[1] == 0);
  CHECK(dx[2] == doctest::Approx(0.5));
}
