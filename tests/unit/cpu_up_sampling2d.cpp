// Enlarging images: the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/kernels/up_sampling2d.hpp>
#include <strata/reference/up_sampling2d.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <class T, up_sampling_settings S, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  INFO(In[0], "x", In[1], "x", In[2], " ", S.sampling_height, "x", S.sampling_width, " bytes ", sizeof(T));
  compare_with_reference<kernel<cpu, up_sampling<S>, P, In>, type_list<up_sampling<S>>, T, In>();
}

}  // namespace

TEST_CASE_TEMPLATE("repeated pixels", T, float, double) {
  check<T, up_sampling_settings{2, 2}, shape{3, 5, 16}>();
  check<T, up_sampling_settings{3, 1}, shape{2, 3, 21}>();
  check<T, up_sampling_settings{1, 4}, shape{4, 2, 3}>();
}

TEST_CASE_TEMPLATE("bilinear", T, float, double) {
  check<T, up_sampling_settings{2, 2, true}, shape{3, 5, 16}>();
  check<T, up_sampling_settings{3, 1, true}, shape{2, 3, 21}>();
  check<T, up_sampling_settings{1, 4, true}, shape{4, 2, 3}>();
  check<T, up_sampling_settings{2, 3, true}, shape{1, 1, 5}>();
}
