// Convolutions of the cpu backend against the reference backend in double precision.
#include <doctest/doctest.h>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

TEST_CASE_TEMPLATE("convolutions", T, float, double) {
  SUBCASE("plain") {
    convolution_like_reference<T, conv_settings{17, 3, 3}, image(7, 6, 3)>();
    convolution_like_reference<T, conv_settings{10, 2, 3, 1, 1, 1, 1, 1, false, false}, image(5, 9, 1), relu>();
    convolution_like_reference<T, conv_settings{32, 1, 1}, image(4, 5, 33)>();
  }
  SUBCASE("padded") {
    convolution_like_reference<T, conv_settings{16, 3, 3, 1, 1, 1, 1, 1, true}, image(5, 7, 10), relu>();
    convolution_like_reference<T, conv_settings{3, 4, 2, 1, 1, 1, 1, 1, true}, image(6, 5, 17), leaky_relu<>>();
    convolution_like_reference<T, conv_settings{5, 5, 5, 1, 1, 1, 1, 1, true}, image(3, 2, 2)>();
  }
  SUBCASE("strided") {
    convolution_like_reference<T, conv_settings{18, 3, 3, 2, 2}, image(8, 9, 4)>();
    convolution_like_reference<T, conv_settings{8, 3, 5, 2, 3, 1, 1, 1, true}, image(7, 11, 5), relu>();
    convolution_like_reference<T, conv_settings{4, 1, 1, 2, 2}, image(6, 7, 9)>();
    convolution_like_reference<T, conv_settings{4, 2, 2, 3, 3}, image(11, 9, 3)>();
    convolution_like_reference<T, conv_settings{6, 3, 3, 4, 4, 1, 1, 1, true}, image(3, 9, 3)>();
  }
  SUBCASE("dilated") {
    convolution_like_reference<T, conv_settings{9, 3, 3, 1, 1, 2, 3}, image(8, 9, 4)>();
    convolution_like_reference<T, conv_settings{7, 3, 2, 1, 1, 2, 2, 1, true}, image(6, 5, 3), relu>();
  }
}
