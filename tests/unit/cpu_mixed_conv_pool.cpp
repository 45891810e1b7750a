// Convolution + relu + max pooling with bfloat16 products.
#include <doctest/doctest.h>

#include <strata/cpu/mixed/conv_pool.hpp>
#include <strata/reference/reference.hpp>

#include "cpu_mixed.hpp"

using namespace strata;
using namespace strata::core;

namespace {

constexpr pool_settings two_by_two{2, 2};

template <conv_settings S, shape In>
void check() {
  const conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " same ", s.same);
  using ops = type_list<convolution<S>, relu, max_pooling<two_by_two>>;
  using fast = kernel<cpu, fused<convolution<S>, relu, max_pooling<two_by_two>>, precision::mixed_bf16, In>;
  cpu_mixed::compare<fast, simd::mixed_conv_pool<simd::bf16_by_software, S, two_by_two, In>, In>(ops{}, 4, false);
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }
constexpr conv_settings padded(int filters, int height, int width) { return {filters, height, width, 1, 1, 1, 1, 1, true}; }

}  // namespace

TEST_CASE("mixed convolution + relu + max pooling, Winograd") {
  check<conv_settings{64, 3, 3}, image(8, 7, 32)>();
  check<padded(30, 3, 3), image(5, 6, 17)>();
  check<conv_settings{66, 3, 3, 1, 1, 1, 1, 1, false, false}, image(8, 13, 26)>();
}
