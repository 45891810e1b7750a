// Losses of the cpu backend that are means over elements, against the reference backend in double precision.
#include "cpu_compare_losses.hpp"

using namespace strata;
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
