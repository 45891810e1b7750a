// Convolution + relu + max pooling in one kernel against the chain of reference kernels in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <strata/base/random.hpp>
#include <strata/cpu/convolution/conv_pool.hpp>
#include <vector>

#include "cpu_compare.hpp"

using namespace strata;
using namespace strata::core;

namespace {

constexpr pool_settings two_by_two{2, 2};

template <class T, conv_settings S, shape In>
void check() {
  using P = std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>;
  const conv_settings s = S;
  INFO(In[0], "x", In[1], "x", In[2], " kernel ", s.kernel_height, "x", s.kernel_width, "x", s.filters, " same ", s.same,
       " bytes ", sizeof(T));
  compare_with_reference<kernel<cpu, fused<convolution<S>, relu, max_pooling<two_by_two>>, P, In>,
                         type_list<convolution<S>, relu, max_pooling<two_by_two>>, T, In>();
}

constexpr shape image(int h, int w, int c) { return {h, w, c}; }
constexpr conv_settings padded(int filters, int height, int width) { return {filters, height, width, 1, 1, 1, 1, 1, true}; }

}  // namespace

TEST_CASE_TEMPLATE("convolution + relu + max pooling", T, float, double) {
  SUBCASE("one channel") {
    check<T, conv_settings{32, 3, 3}, image(12, 9, 1)>();
    check<T, conv_settings{10, 3, 3}, image(7, 8, 1)>();
    check<T, padded(35, 5, 5), image(6, 7, 1)>();
  }
  SUBCASE("few filters") {
    using few = kernel<cpu, fused<convolution<padded(3, 5, 5)>, relu, max_pooling<two_by_two>>,
                       std::conditional_t<sizeof(T) == 4, precision::f32, precision::f64>, image(16, 15, 4)>;
    static_assert(simd::lanes<T> < 8 || few::planar);
    check<T, padded(3, 5, 5), image(16, 15, 4)>();
  }
  SUBCASE("few channels") {
    check<T, conv_settings{17, 3, 3}, image(9, 8, 3)>();
    check<T, padded(5, 2, 3), image(7, 7, 10)>();
    check<T, conv_settings{6, 5, 5}, image(9, 8, 4)>();
  }
  SUBCASE("many channels, tiles of two windows, and of two and a half") {
    static_assert(simd::winograd_tile(17, 35, 8, 8) == 4 && simd::winograd_tile(33, 18, 10, 10) == 5);
    check<T, padded(35, 3, 3), image(9, 8, 17)>();
    check<T, conv_settings{18, 3, 3}, image(13, 12, 33)>();
    // Several panels, and an odd number of rows of tiles: the last band has one instead of two.
    static_assert(simd::winograd_tile(33, 80, 14, 14) == 5);
    check<T, conv_settings{80, 3, 3}, image(17, 17, 33)>();
  }
  SUBCASE("many channels") {
    check<T, conv_settings{64, 3, 3}, image(8, 7, 32)>();
    check<T, padded(30, 3, 3), image(5, 6, 17)>();
    check<T, conv_settings{66, 5, 5, 1, 1, 1, 1, 1, false, false}, image(8, 9, 19)>();
  }
}

namespace {

/// Whether window i reads an output of a tile of M outputs that reads `pixel`, along one axis. M = 1: whether window i reads it.
constexpr bool tile_saw(int M, int i, int pixel) {
  for (const int output : {2 * i, 2 * i + 1})
    if (const int first = output / M * M; first <= pixel && pixel < first + M + 2) return true;
  return false;
}

/// Checks that if one pixel is nan, so are the windows that read it, and their gradient is zero. Other windows are not affected,
/// unless they share a tile with one of these.
template <int Tile, conv_settings S, shape In>
void check_nan(int row, int column) {
  using K = kernel<cpu, fused<convolution<S>, relu, max_pooling<two_by_two>>, precision::f32, In>;
  static_assert(Tile == (K::winograd ? K::tile : 1));
  constexpr int F = S.filters, count = K::out_size;
  std::vector<float> x(In.size()), w(9 * In[2] * F), b(F, 0.1f), y[2], saved(traits_of_kernel<K>.saved),
      derived(traits_of_kernel<K>.derived + 16),
      scratch(traits_of_kernel<K>.scratch + traits_of_kernel<K>.scratch_per_sample + 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{1}.uniform(i));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = float(philox{2}.uniform(i) - 0.5);
  operands<float> o;
  o.count = 1, o.x[0] = x.data(), o.w[0] = w.data(), o.w[1] = b.data();
  o.saved = saved.data(), o.scratch = scratch.data(), o.derived = derived.data();
  K::derive(o.w, derived.data());
  std::vector<std::int8_t> winners[2];
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) x[std::size_t((row * In[1] + column + 1) * In[2] - 1)] = NAN;
    y[pass].resize(count);
    o.y = y[pass].data();
    K::forward(o);
    winners[pass].assign(K::winners(o, 0), K::winners(o, 0) + count);
  }
  for (int i = 0; i < count; ++i) {
    const int down = i / F / K::windows_across, across = i / F % K::windows_across;
    CAPTURE(down);
    CAPTURE(across);
    if (tile_saw(1, down, row) && tile_saw(1, across, column))
      CHECK((std::isnan(y[1][std::size_t(i)]) && winners[1][std::size_t(i)] == simd::dead));
    else if (!tile_saw(Tile, down, row) || !tile_saw(Tile, across, column))
      CHECK((y[1][std::size_t(i)] == y[0][std::size_t(i)] && winners[1][std::size_t(i)] == winners[0][std::size_t(i)]));
  }
}

}  // namespace

TEST_CASE("nan wins over all") {
  SUBCASE("one channel") { check_nan<1, conv_settings{40, 3, 3}, image(9, 8, 1)>(0, 1); }
  SUBCASE("direct") { check_nan<1, conv_settings{40, 3, 3}, image(9, 8, 3)>(0, 1); }
  SUBCASE("Winograd, a tile is a window") { check_nan<2, conv_settings{20, 3, 3}, image(9, 8, 17)>(0, 1); }
  SUBCASE("tiles of two windows") { check_nan<4, conv_settings{20, 3, 3}, image(11, 11, 17)>(5, 1); }
  SUBCASE("tiles of two and a half") { check_nan<5, conv_settings{20, 3, 3}, image(17, 12, 17)>(6, 1); }
}

TEST_CASE("the first of equal pixels wins, and relu stops the gradient at 0") {
  constexpr conv_settings S{1, 1, 1};
  constexpr shape In{2, 4, 1};
  using K = kernel<cpu, fused<convolution<S>, relu, max_pooling<two_by_two>>, precision::f32, In>;
  const float x[8] = {1, 2, 0, 0, 2, 2, 0, -1}, w[1] = {1}, b[1] = {0}, dy[2] = {3, 5};
  float y[2], dx[8], dw[1], db[1], saved[traits_of_kernel<K>.saved],
      scratch[traits_of_kernel<K>.scratch + traits_of_kernel<K>.scratch_per_sample + 16], derived[traits_of_kernel<K>.derived];
  operands<float> o;
  o.count = 1, o.x[0] = x, o.y = y, o.w[0] = w, o.w[1] = b, o.dy = dy, o.dx[0] = dx, o.dw[0] = dw, o.dw[1] = db;
  o.saved = saved, o.scratch = scratch, o.derived = derived;
  K::derive(o.w, derived);
  K::forward(o);
  K::backward(o);
  CHECK(y[0] == 2);
  CHECK(y[1] == 0);
  const float expected[8] = {0, 3, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 8; ++i) CHECK(dx[i] == expected[i]);
  CHECK(dw[0] == 6);
  CHECK(db[0] == 3);
}
