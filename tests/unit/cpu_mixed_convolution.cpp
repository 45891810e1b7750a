// Convolutions with bfloat16 products.
#include <doctest/doctest.h>

#include <strata/cpu/mixed/conv2d.hpp>
#include <strata/reference/activations.hpp>
#include <strata/reference/conv2d.hpp>

#include "cpu_mixed.hpp"

using namespace strata;
using namespace strata::core;

namespace {

template <template <class, conv_settings, class, shape> class Kernel, conv_settings S, shape In, class Activation = linear>
void check() {
  const conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " same ", s.same);
  constexpr bool alone = std::is_same_v<Activation, linear>;
  using ops = std::conditional_t<alone, type_list<convolution<S>>, type_list<convolution<S>, Activation>>;
  cpu_mixed::compare<Kernel<simd::bf16, S, Activation, In>, Kernel<simd::bf16_by_software, S, Activation, In>, In>(ops{}, 4,
                                                                                                                   alone);
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }
constexpr conv_settings padded(int filters) { return {filters, 3, 3, 1, 1, 1, 1, 1, true}; }

}  // namespace

TEST_CASE("mixed 3x3 convolutions") {
  check<simd::mixed_winograd_convolution, conv_settings{32, 3, 3}, image(6, 7, 16)>();
  check<simd::mixed_winograd_convolution, padded(49), image(5, 4, 19), relu>();
  check<simd::mixed_winograd_convolution, padded(16), image(8, 8, 16)>();
}

TEST_CASE("mixed 1x1 convolutions") {
  check<simd::mixed_pointwise, conv_settings{33, 1, 1}, image(3, 3, 34)>();
  check<simd::mixed_pointwise, conv_settings{32, 1, 1, 1, 1, 1, 1, 1, false, false}, image(2, 4, 32), relu>();
}
