// Transposed convolutions of the cpu backend, alone and with an activation, against the reference backend in double precision.
#include <doctest/doctest.h>

#include <strata/cpu/convolution/conv2d_transpose.hpp>
#include <strata/reference/conv2d_transpose.hpp>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

constexpr transposed_conv_settings same(int filters, int height, int width, int stride = 1, bool bias = true) {
  return {filters, height, width, stride, stride, 1, 1, true, bias};
}
constexpr transposed_conv_settings valid(int filters, int height, int width, int stride = 1, int dilation = 1) {
  return {filters, height, width, stride, stride, dilation, dilation};
}

template <class T, transposed_conv_settings S, shape In, class Activation = linear>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  using op = transposed_convolution<S>;
  const transposed_conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " stride ",
       s.stride_height, " dilation ", s.dilation_height, " same ", s.same, " bytes ", sizeof(T));
  if constexpr (std::is_same_v<Activation, linear>)
    compare_with_reference<kernel<cpu, op, P, In>, type_list<op>, T, In>();
  else
    compare_with_reference<kernel<cpu, fused<op, Activation>, P, In>, type_list<op, Activation>, T, In>();
}

}  // namespace

TEST_CASE_TEMPLATE("stride 2, as decoders have it", T, float, double) {
  check<T, same(16, 3, 3, 2), shape{4, 5, 24}, relu>();
  check<T, valid(8, 2, 2, 2), shape{3, 4, 16}>();
  check<T, same(1, 3, 3, 2), shape{5, 4, 8}, sigmoid>();
  check<T, same(3, 4, 4, 2, false), shape{4, 4, 5}>();
}
TEST_CASE_TEMPLATE("stride 1: also by tiles, and with one channel", T, float, double) {
  check<T, same(16, 3, 3), shape{6, 7, 17}, relu>();
  check<T, valid(16, 3, 3), shape{6, 5, 16}>();
  check<T, same(5, 5, 3), shape{6, 5, 1}>();
  check<T, same(7, 1, 1), shape{3, 3, 4}>();
}
TEST_CASE_TEMPLATE("a stride beyond the kernel, and dilation", T, float, double) {
  check<T, valid(4, 2, 1, 3), shape{3, 2, 5}>();
  check<T, same(4, 1, 1, 2), shape{3, 2, 5}, relu>();
  check<T, valid(4, 3, 2, 1, 2), shape{4, 3, 6}>();
}
