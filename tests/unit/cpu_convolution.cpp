// Convolutions of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/convolution.hpp>

#include "cpu_compare.hpp"

using namespace strata;

namespace {

template <class T, conv_settings S, shape In, class Activation = linear>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  const conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " stride ",
       s.stride_height, ",", s.stride_width, " dilation ", s.dilation_height, ",", s.dilation_width, " groups ", s.groups,
       " same ", s.same, " bytes ", sizeof(T));
  if constexpr (std::is_same_v<Activation, linear>)
    compare_with_reference<kernel<cpu, convolution<S>, P, In>, list<convolution<S>>, T, In>();
  else
    compare_with_reference<kernel<cpu, fused<convolution<S>, Activation>, P, In>, list<convolution<S>, Activation>, T, In>();
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }

}  // namespace

TEST_CASE_TEMPLATE("convolutions", T, float, double) {
  SUBCASE("plain") {
    check<T, conv_settings{17, 3, 3}, image(7, 6, 3)>();
    check<T, conv_settings{10, 2, 3, 1, 1, 1, 1, 1, false, false}, image(5, 9, 1), relu>();
    check<T, conv_settings{32, 1, 1}, image(4, 5, 33)>();
  }
  SUBCASE("padded") {
    check<T, conv_settings{16, 3, 3, 1, 1, 1, 1, 1, true}, image(5, 7, 10), relu>();
    check<T, conv_settings{3, 4, 2, 1, 1, 1, 1, 1, true}, image(6, 5, 17), leaky_relu<>>();
    check<T, conv_settings{5, 5, 5, 1, 1, 1, 1, 1, true}, image(3, 2, 2)>();
  }
  SUBCASE("strided") {
    check<T, conv_settings{18, 3, 3, 2, 2}, image(8, 9, 4)>();
    check<T, conv_settings{8, 3, 5, 2, 3, 1, 1, 1, true}, image(7, 11, 5), relu>();
    check<T, conv_settings{4, 1, 1, 2, 2}, image(6, 7, 9)>();
    check<T, conv_settings{4, 2, 2, 3, 3}, image(11, 9, 3)>();
    check<T, conv_settings{6, 3, 3, 4, 4, 1, 1, 1, true}, image(3, 9, 3)>();
  }
  SUBCASE("dilated") {
    check<T, conv_settings{9, 3, 3, 1, 1, 2, 3}, image(8, 9, 4)>();
    check<T, conv_settings{7, 3, 2, 1, 1, 2, 2, 1, true}, image(6, 5, 3), relu>();
  }
  SUBCASE("grouped") {
    check<T, conv_settings{12, 3, 3, 1, 1, 1, 1, 3, true}, image(5, 4, 6)>();
    check<T, conv_settings{8, 3, 3, 2, 2, 1, 1, 4}, image(7, 5, 4), relu>();
    check<T, conv_settings{19, 3, 3, 1, 1, 1, 1, 19, true}, image(5, 6, 19), relu>();
    check<T, conv_settings{40, 3, 2, 2, 1, 1, 1, 40}, image(7, 6, 40)>();
  }
}
