// Depthwise convolutions and those in groups of few channels.
#include <doctest/doctest.h>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

TEST_CASE_TEMPLATE("depthwise convolutions", T, float, double) {
  convolution_like_reference<T, same_size(19, 3, 3, 1, 19), image(5, 13, 19), relu>();
  convolution_like_reference<T, same_size(32, 3, 3, 2, 32), image(7, 10, 32)>();
  convolution_like_reference<T, conv_settings{40, 3, 2, 2, 1, 1, 1, 40}, image(7, 6, 40)>();
  convolution_like_reference<T, same_size(3, 5, 5, 1, 3), image(9, 8, 3)>();
}
TEST_CASE_TEMPLATE("several filters of each channel", T, float, double) {
  convolution_like_reference<T, same_size(34, 3, 3, 1, 17), image(5, 6, 17)>();
  convolution_like_reference<T, valid(10, 7, 5, 2, 2), image(11, 9, 2), relu>();
}
