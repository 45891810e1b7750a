// Convolutions with few filters or few channels: the lanes of the cpu backend are pixels.
#include <doctest/doctest.h>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

namespace {
template <class T, conv_settings S, shape In>
using planar = simd::planar_convolution<S, In, T>;
}

TEST_CASE_TEMPLATE("few filters", T, float, double) {
  convolution_like_reference<T, same_size(6, 5, 5), image(13, 12, 1), tanh_activation>();
  static_assert(simd::lanes<T> < 8 || planar<T, same_size(1, 3, 3), image(7, 9, 20)>::forward_pays);
  convolution_like_reference<T, same_size(1, 3, 3), image(7, 9, 20)>();
  static_assert(simd::lanes<T> < 8 || planar<T, valid(3, 5, 5, 2), image(21, 33, 4)>::forward_pays);
  convolution_like_reference<T, valid(3, 5, 5, 2), image(21, 33, 4), relu>();
}
TEST_CASE_TEMPLATE("few channels", T, float, double) {
  static_assert(simd::lanes<T> < 8 || planar<T, valid(18, 5, 5), image(10, 11, 2)>::input_pays);
  convolution_like_reference<T, valid(18, 5, 5), image(10, 11, 2)>();
  static_assert(simd::lanes<T> < 8 || planar<T, same_size(20, 5, 4, 2), image(14, 21, 3)>::input_pays);
  convolution_like_reference<T, same_size(20, 5, 4, 2), image(14, 21, 3)>();
}
