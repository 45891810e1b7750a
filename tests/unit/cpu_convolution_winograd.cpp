// Convolutions that the cpu backend computes by Winograd's algorithm, with every size of tiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "cpu_convolution.hpp"

using namespace cpu_compare;

/// The tolerance in float: the terms that tiles of 4x4 and 5x5 outputs add are larger than the sum, and cancel.
constexpr double larger_tiles = 2e-5;

TEST_CASE_TEMPLATE("Winograd convolutions", T, float, double) {
  SUBCASE("odd sizes") {
    convolution_like_reference<T, same_size(17, 3, 3), image(5, 7, 19), relu>(larger_tiles);
    convolution_like_reference<T, valid(70, 3, 3), image(9, 8, 16)>(larger_tiles);
  }
  SUBCASE("even sizes") {
    convolution_like_reference<T, same_size(32, 3, 3), image(8, 10, 33)>(larger_tiles);
    convolution_like_reference<T, valid(16, 3, 3), image(10, 10, 16), leaky_relu<>>(larger_tiles);
  }
  SUBCASE("an image in parts") { convolution_like_reference<T, same_size(130, 3, 3), image(16, 13, 144)>(larger_tiles); }
  SUBCASE("one pixel") { convolution_like_reference<T, valid(16, 3, 3), image(3, 3, 20)>(larger_tiles); }
}

namespace {

using two = std::integral_constant<int, 2>;
using four = std::integral_constant<int, 4>;
using five = std::integral_constant<int, 5>;

/// Computes a convolution of `count` images without padding by tiles of one size, and by its definition in double.
template <class T, int M>
struct by_definition {
  int C, F, H, W, count, OH = H - 2, OW = W - 2;
  buffer<T> x{count * H * W * C}, w{9 * C * F}, dy{count * OH * OW * F};
  buffer<T> y{count * OH * OW * F, T(NAN)}, dx{count * H * W * C, T(NAN)}, dw{9 * C * F, T(NAN)};

  void fill() {
    for (int i = 0; i < x.size; ++i) x.data[i] = T(number(1, i));
    for (int i = 0; i < w.size; ++i) w.data[i] = T(number(2, i));
    for (int i = 0; i < dy.size; ++i) dy.data[i] = T(number(3, i));
  }

  void forward() {
    const simd::winograd_convolution<T, M> tiles{C, F, OH, OW, {H, W, 0, 0}};
    buffer<T> u(tiles.weights(C, F), T(NAN)), scratch(tiles.scratch(), T(NAN));
    simd::winograd_panel_weights<M>(w.data, C, F, u.data);
    tiles(x.data, count, u.data, scratch.data,
          [&](const T* m, int element, int row, int n, simd::tile_walk& walk, int first, int filters) {
            simd::winograd_store<linear>(tiles, m, element, row, n, walk, first, filters, nullptr, y.data, false);
          });
  }
  void backward() {
    const simd::winograd_convolution<T, M> tiles{F, C, H, W, {OH, OW, 2, 2}};
    buffer<T> u(tiles.weights(F, C), T(NAN)), scratch(tiles.scratch(), T(NAN));
    simd::winograd_turned_weights<M>(w.data, C, F, u.data);
    tiles(dy.data, count, u.data, scratch.data,
          [&](const T* m, int element, int row, int n, simd::tile_walk& walk, int first, int filters) {
            simd::winograd_store<linear>(tiles, m, element, row, n, walk, first, filters, nullptr, dx.data, false);
          });
    const simd::winograd_weight_gradient<T, M> gradient{{C, F, OH, OW, {H, W, 0, 0}}};
    buffer<T> work(gradient.scratch(), T(NAN));
    gradient(x.data, dy.data, count, dw.data, false, work.data);
  }

  /// The root of the mean squared difference of y, dx and dw, relative to that of the expected values.
  struct errors {
    double y, dx, dw;
  };
  errors measure() const {
    std::vector<double> expected_y(std::size_t(y.size)), expected_dx(std::size_t(dx.size)), expected_dw(std::size_t(dw.size));
    for (int n = 0; n < count; ++n)
      for (int p = 0; p < OH * OW; ++p)
        for (int t = 0; t < 9; ++t) {
          const int from = ((n * H + p / OW + t / 3) * W + p % OW + t % 3) * C, to = (n * OH * OW + p) * F;
          for (int c = 0; c < C; ++c)
            for (int f = 0; f < F; ++f) {
              const std::size_t i = std::size_t(from + c), j = std::size_t(to + f), k = std::size_t((t * C + c) * F + f);
              expected_y[j] += double(x.data[i]) * double(w.data[k]);
              expected_dx[i] += double(dy.data[j]) * double(w.data[k]);
              expected_dw[k] += double(dy.data[j]) * double(x.data[i]);
            }
        }
    return {error(y, expected_y), error(dx, expected_dx), error(dw, expected_dw)};
  }
  static double error(const buffer<T>& a, const std::vector<double>& b) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) apart += std::pow(double(a.data[i]) - b[i], 2), size += b[i] * b[i];
    return std::sqrt(apart / size);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("any number of tiles, channels and filters", M, two, four, five) {
  const int sizes[][5] = {{16, 16, 3, 3, 1}, {17, 19, 3, 9, 3},  {33, 16, 8, 4, 2},   {1, 5, 7, 7, 2},   {70, 35, 6, 7, 1},
                          {5, 1, 12, 13, 2}, {16, 64, 11, 6, 7}, {130, 20, 14, 5, 1}, {2, 3, 25, 23, 1}, {20, 150, 4, 22, 2}};
  for (const auto& s : sizes) {
    INFO(s[0], " channels, ", s[1], " filters, ", s[2], "x", s[3]);
    by_definition<double, M::value> exact{s[0], s[1], s[2], s[3], s[4]};
    exact.fill(), exact.forward(), exact.backward();
    const auto error = exact.measure();
    CHECK(error.y < 1e-14);
    CHECK(error.dx < 1e-14);
    CHECK(error.dw < 1e-14);
    by_definition<float, M::value> rounded{s[0], s[1], s[2], s[3], s[4]};
    rounded.fill(), rounded.forward(), rounded.backward();
    const auto rough = rounded.measure();
    CHECK(rough.y < 5e-6);
    CHECK(rough.dx < 5e-6);
    CHECK(rough.dw < 5e-6);
  }
}

TEST_CASE("larger tiles cost accuracy, but not more than what the choice of their points promises") {
  const auto errors = [](auto M) {
    by_definition<float, M> c{64, 64, 22, 22, 1};
    c.fill(), c.forward(), c.backward();
    const auto e = c.measure();
    return std::max({e.y, e.dx, e.dw});
  };
  CHECK(errors(two{}) < 5e-7);
  CHECK(errors(four{}) < 2.5e-6);
  CHECK(errors(five{}) < 4e-6);
}

TEST_CASE("the tile is chosen for the least work") {
  CHECK(simd::winograd_tile(32, 64, 10, 10) == 5);   // 4 tiles
  CHECK(simd::winograd_tile(64, 64, 8, 8) == 4);     // 4 tiles
  CHECK(simd::winograd_tile(64, 64, 2, 2) == 2);     // a quarter of a larger one
  CHECK(simd::winograd_tile(512, 512, 4, 4) == 2);   // weights that fit in no cache
  CHECK(simd::winograd_tile(512, 64, 10, 10) == 4);  // too many channels for the error of 5
}

TEST_CASE_TEMPLATE("nan reaches what saw it, and no other tile", M, two, four, five) {
  constexpr int m = M::value, size = 2 * m + 2, F = 16;
  by_definition<float, m> c{16, F, size, size, 1};
  c.fill();
  c.x.data[(m * size + 1) * 16] = NAN;  // tiles (0, 0) and (1, 0) overlap here
  c.forward();
  for (int p = 0; p < c.OH * c.OW; ++p) {
    const int row = p / c.OW, column = p % c.OW;
    const bool saw = row >= m - 2 && row <= m && column <= 1, may = column < m;
    INFO("row ", row, " column ", column);
    for (int f = 0; f < F; ++f)
      if (saw || !may) CHECK(std::isnan(c.y.data[p * F + f]) == saw);
  }
}
