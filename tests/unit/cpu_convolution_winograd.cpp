// Convolutions that the cpu backend computes by Winograd's algorithm.
#include <doctest/doctest.h>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

TEST_CASE_TEMPLATE("Winograd convolutions", T, float, double) {
  SUBCASE("odd sizes") {
    convolution_like_reference<T, same(17, 3, 3), image(5, 7, 19), relu>();
    convolution_like_reference<T, valid(70, 3, 3), image(9, 8, 16)>();
  }
  SUBCASE("even sizes") {
    convolution_like_reference<T, same(32, 3, 3), image(8, 10, 33)>();
    convolution_like_reference<T, valid(16, 3, 3), image(10, 10, 16), leaky_relu<>>();
  }
  SUBCASE("an image in parts") { convolution_like_reference<T, same(130, 3, 3), image(16, 13, 144)>(); }
  SUBCASE("one pixel") { convolution_like_reference<T, valid(16, 3, 3), image(3, 3, 20)>(); }
}
