#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <vector>

#include "data_values.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;
using test::values;

namespace {
/// The elements of each window.
template <class V>
std::vector<std::vector<int>> windows(const V& view) {
  std::vector<std::vector<int>> all;
  for (const auto& w : values(view)) all.emplace_back(w.values.begin(), w.values.end());
  return all;
}
/// Sample i is (i, -i), its label i.
auto series(int n) {
  std::vector<float> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i) x.push_back(float(i)), x.push_back(float(-i)), y.push_back(i);
  return data::from_tensor_slices(data::array<float, shape{2}>(std::move(x)), y);
}
}  // namespace

// Dataset.range(n).window(size, shift, stride, drop_remainder=True) of TensorFlow 2.21
TEST_CASE("windows as in tf.data") {
  using all = std::vector<std::vector<int>>;
  CHECK(windows(data::range(7) | data::window<3>()) == all{{0, 1, 2}, {3, 4, 5}});
  CHECK(windows(data::range(10) | data::window<3>({.shift = 2, .stride = 2})) == all{{0, 2, 4}, {2, 4, 6}, {4, 6, 8}});
  CHECK(windows(data::range(4) | data::window<3>({.shift = 1})) == all{{0, 1, 2}, {1, 2, 3}});
  CHECK(windows(data::range(3) | data::window<3>({.shift = 9})) == all{{0, 1, 2}});
  CHECK(windows(data::range(3) | data::window<1>({.shift = 2})) == all{{0}, {2}});
}

TEST_CASE("every count, shift and stride, against a plain loop") {
  for (int n = 4; n < 14; ++n)
    for (int shift = 1; shift < 6; ++shift)
      for (int stride = 1; 3 * stride < n; ++stride) {
        std::vector<std::vector<int>> expected;
        for (int first = 0; first + 3 * stride < n; first += shift)
          expected.push_back({first, first + stride, first + 2 * stride, first + 3 * stride});
        const auto view = data::range(n) | data::window<4>({.shift = shift, .stride = stride});
        REQUIRE(view.size() == expected.size());
        REQUIRE(windows(view) == expected);
      }
}

TEST_CASE("samples of shape (Size, S...) with the label of the last one, also shuffled and scaled") {
  auto batches = series(9) | data::scale(2) | data::window<3>({.shift = 1}) | data::shuffle(20) | data::batch<4>;
  static_assert(decltype(batches)::sample_shape == shape{3, 2});
  int count = 0;
  for (const samples<float>& b : batches)
    for (int k = 0; k < b.count; ++k, ++count)
      for (int row = 0; row < 3; ++row) {
        CHECK(b.x()[6 * k + 2 * row] == float(2 * (b.labels()[k] - 2 + row)));
        CHECK(b.x()[6 * k + 2 * row + 1] == -b.x()[6 * k + 2 * row]);
      }
  CHECK(count == 7);
  const auto overlapping = series(9) | data::window<3>({.shift = 1});
  for (std::size_t i = 0; i < overlapping.size(); ++i)
    CHECK(overlapping.rows().label(data::detail::index_at(overlapping, i, 0)) == int(i) + 2);
  auto hot = series(5) | data::one_hot<5> | data::window<2>() | data::batch<2>;
  const samples<float> b = *hot.begin();
  CHECK(b.targets()[1] == 1);
  CHECK(b.targets()[5 + 3] == 1);
  CHECK(b.targets()[5 + 2] == 0);
  auto later = series(5) | data::window<2>() | data::one_hot<4> | data::batch<2>;
  CHECK((*later.begin()).targets()[4 + 3] == 1);
}

TEST_CASE("windows of windows, of concatenated views, and beside targets of their own") {
  CHECK(windows(data::range(2) | data::concatenate(data::range(7, 9)) | data::window<3>({.shift = 1})) ==
        std::vector<std::vector<int>>{{0, 1, 7}, {1, 7, 8}});
  const auto nested = data::range(4) | data::window<2>({.shift = 1}) | data::window<2>({.shift = 1});
  static_assert(data::rows_t<decltype(nested)>::sample_shape == shape{2, 2, 1});
  CHECK(windows(nested) == std::vector<std::vector<int>>{{0, 1, 1, 2}, {1, 2, 2, 3}});
  auto forecast = data::zip(data::range(6) | data::window<3>({.shift = 1}), data::range(3, 6)) | data::batch<3>;
  const samples<float> b = *forecast.begin();
  for (int k = 0; k < 3; ++k) CHECK(b.labels()[k] == int(b.x()[3 * k + 2]) + 1);
}

TEST_CASE("what does not fit is refused") {
  CHECK_THROWS_WITH_AS(data::range(8) | data::window<5>({.stride = 2}),
                       "window<5>: a window spans 9 samples, but the data set has 8", strata_error);
  CHECK_THROWS_WITH_AS(data::range(8) | data::window<5>({.shift = 0}), "window<5>: the shift is 0, it must be at least 1",
                       strata_error);
  CHECK_THROWS_WITH_AS(data::range(8) | data::window<5>({.stride = -1}), "window<5>: the stride is -1, it must be at least 1",
                       strata_error);
  const auto failing = data::range(8) | data::map([](auto i) {
                         if (i == 5) throw std::runtime_error("no five");
                         return i;
                       });
  CHECK(error_of([&] { values(failing | data::window<2>()); }) == "map: sample 5: no five");
  const auto mapped = data::range(8) | data::window<2>() | data::map([](auto w) {
                        if (w(1, 0) == 5) throw std::runtime_error("no five");
                        return w(0, 0);
                      });
  CHECK(error_of([&] { values(mapped); }) == "map: window 2, from sample 4 to sample 5: no five");
}
