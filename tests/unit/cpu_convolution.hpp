// Compares a convolution of the cpu backend, alone or with its activation, with the reference backend in double precision.
#pragma once
#include <strata/cpu/convolution/conv2d.hpp>

#include "cpu_compare.hpp"

namespace cpu_compare {

/// Compares a convolution with the reference. single: the tolerance in float.
template <class T, conv_settings S, shape In, class Activation = linear>
void convolution_like_reference(double single = 1e-5) {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  const conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " stride ",
       s.stride_height, ",", s.stride_width, " dilation ", s.dilation_height, ",", s.dilation_width, " groups ", s.groups,
       " same ", s.same, " bytes ", sizeof(T));
  if constexpr (std::is_same_v<Activation, linear>)
    compare_with_reference<kernel<cpu, convolution<S>, P, In>, type_list<convolution<S>>, T, In>(single);
  else
    compare_with_reference<kernel<cpu, fused<convolution<S>, Activation>, P, In>, type_list<convolution<S>, Activation>, T, In>(
        single);
}

constexpr shape image(int height, int width, int channels) { return {height, width, channels}; }
constexpr conv_settings same_size(int filters, int height, int width, int stride = 1, int groups = 1) {
  return {filters, height, width, stride, stride, 1, 1, groups, true};
}
constexpr conv_settings valid(int filters, int height, int width, int stride = 1, int groups = 1) {
  return {filters, height, width, stride, stride, 1, 1, groups};
}

}  // namespace cpu_compare
