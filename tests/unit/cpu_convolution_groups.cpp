// Convolutions in groups, with few and with many channels.
#include <doctest/doctest.h>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

TEST_CASE_TEMPLATE("groups", T, float, double) {
  SUBCASE("of few channels") {
    convolution_like_reference<T, same_size(12, 3, 3, 1, 3), image(5, 4, 6)>();
    convolution_like_reference<T, valid(8, 3, 3, 2, 4), image(7, 5, 4), relu>();
    convolution_like_reference<T, conv_settings{12, 3, 3, 1, 1, 2, 3, 4}, image(8, 9, 20)>();
  }
  SUBCASE("of many") {
    convolution_like_reference<T, same_size(26, 3, 3, 2, 2), image(5, 6, 40)>();
    convolution_like_reference<T, same_size(8, 1, 3, 1, 2), image(5, 6, 32)>();
  }
}
