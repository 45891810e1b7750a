#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <string>
#include <utility>
#include <vector>
using namespace strata;

namespace {
constexpr shape pair_shape{2};
using pair_of = tensor<const std::uint8_t, pair_shape>;

/// Samples (2k, 2k + 1) with label k.
auto counted(int n) {
  std::vector<std::uint8_t> x;
  std::vector<int> y;
  for (int k = 0; k < n; ++k) {
    x.push_back(static_cast<std::uint8_t>(2 * k));
    x.push_back(static_cast<std::uint8_t>(2 * k + 1));
    y.push_back(k);
  }
  return data::from_tensor_slices(data::array<std::uint8_t, pair_shape>(std::move(x)), y);
}

template <class T>
struct seen {
  std::vector<T> x, targets;
  std::vector<int> labels;
};
template <class Source>
auto all(Source&& source) {
  using S = std::remove_cvref_t<Source>;
  using T = std::remove_cvref_t<decltype(*std::declval<typename S::value_type>().x())>;
  seen<T> s;
  for (const auto& batch : source) {
    const auto n = static_cast<std::size_t>(batch.count);
    s.x.insert(s.x.end(), batch.x(), batch.x() + n * std::size_t{S::sample_shape.size()});
    if (S::labels == label_kind::sparse) s.labels.insert(s.labels.end(), batch.labels(), batch.labels() + n);
    if (S::labels == label_kind::dense)
      s.targets.insert(s.targets.end(), batch.targets(), batch.targets() + n * std::size_t{S::target_shape.size()});
  }
  return s;
}
}  // namespace

TEST_CASE("map: x and label, x alone, an element; what it returns decides shape and kind of label") {
  auto swapped = counted(3) | data::map([](pair_of x, int y) { return std::pair(std::array{float(x(1)), float(x(0))}, 10 * y); });
  static_assert(data::rows_t<decltype(swapped)>::labels == label_kind::sparse);
  static_assert(std::ranges::random_access_range<const decltype(swapped)> && std::ranges::sized_range<decltype(swapped)>);
  auto s = all(swapped | data::batch<2>);
  CHECK(s.x == std::vector<float>{1, 0, 3, 2, 5, 4});
  CHECK(s.labels == std::vector{0, 10, 20});

  auto to_target = counted(3) | data::map([](auto x, int y) { return data::sample{x, double(y) / 2}; });
  static_assert(data::rows_t<decltype(to_target)>::target_shape == shape{1});
  const auto t = all(to_target | data::batch<3, double>);
  CHECK(t.x == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(t.targets == std::vector<double>{0, .5, 1});

  auto unlabelled = data::from_tensor_slices(std::vector{1, 2, 3}) | data::map([](auto x) { return x(0) * x(0); });
  static_assert(data::rows_t<decltype(unlabelled)>::labels == label_kind::none);
  CHECK(all(unlabelled | data::batch<1>).x == std::vector<float>{1, 4, 9});

  auto words = data::from_range(std::vector<std::string>{"a", "to", "the"}) |
               data::map([](const std::string& word) { return word + "!"; }) |
               data::map([](const std::string& word) { return std::pair(float(word.size()), word.back() == '!'); });
  static_assert(!data::sample_view<decltype(data::from_range(std::vector<std::string>{}))>);
  CHECK(all(words | data::batch<3>).x == std::vector<float>{2, 3, 4});
  CHECK(all(words | data::batch<3>).labels == std::vector{1, 1, 1});
}

TEST_CASE("a sample that is passed on is not copied before its batch is written, through any number of maps") {
  const auto keep = [](auto x, auto y) { return std::pair(x, y); };
  auto view = counted(50) | data::map(keep) | data::map(keep) | data::scale(2) | data::map(keep) | data::map(keep);
  const auto s = all(view | data::batch<7>);
  for (int k = 0; k < 100; ++k) REQUIRE(s.x[std::size_t(k)] == 2 * k);
  for (int k = 0; k < 50; ++k) REQUIRE(s.labels[std::size_t(k)] == k);
}

TEST_CASE("scale and one_hot work on what map returns") {
  auto view = counted(4) | data::map([](auto x, int y) { return std::pair(std::array{x(0), x(1)}, y % 2); }) | data::scale(0.5) |
              data::one_hot<2>;
  const auto s = all(view | data::batch<4>);
  CHECK(s.x == std::vector<float>{0, .5, 1, 1.5, 2, 2.5, 3, 3.5});
  CHECK(s.targets == std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1});
  auto three = counted(4) | data::map([](auto x, int y) { return std::pair(x, y); }) | data::one_hot<3> | data::batch<4>;
  CHECK_THROWS_WITH_AS(three.begin(), "one_hot<3>: label 3 of sample 3 is not in 0 ... 2", strata_error);
}

TEST_CASE("targets keep their fractions beside x of integers") {
  const std::vector<std::array<std::uint8_t, 2>> x{{1, 255}, {3, 4}};
  const auto set = data::from_tensor_slices(x, std::vector<float>{0.25f, -1.5f});
  const auto halved = [](auto v, auto y) { return std::pair(v, y(0) / 2); };
  CHECK(all(set | data::map(halved) | data::batch<2>).targets == std::vector<float>{0.125f, -0.75f});
  CHECK(all(set | data::map(halved) | data::batch<2>).x == std::vector<float>{1, 255, 3, 4});
  CHECK(all(set | data::cache | data::batch<2>).targets == std::vector<float>{0.25f, -1.5f});
  const auto large = data::from_tensor_slices(std::vector<std::int32_t>{(1 << 24) + 1}, std::vector<float>{0.5f});
  const auto kept = all(large | data::cache | data::map([](auto v, auto y) { return std::pair(v, y); }) | data::batch<1, double>);
  CHECK(kept.x == std::vector<double>{(1 << 24) + 1});
  CHECK(kept.targets == std::vector<double>{0.5});
}

TEST_CASE("map_to writes x into the batch and leaves labels alone") {
  static constexpr shape out{3};
  auto view = counted(3) | data::map_to<out>([](pair_of x, tensor<float, out> y) {
                y(0) = x(0);
                y(1) = x(1);
                y(2) = -1;
              });
  auto s = all(view | data::batch<2>);
  CHECK(s.x == std::vector<float>{0, 1, -1, 2, 3, -1, 4, 5, -1});
  CHECK(s.labels == std::vector{0, 1, 2});
  CHECK(all(view | data::scale(2) | data::batch<2, double>).x == std::vector<double>{0, 2, -2, 4, 6, -2, 8, 10, -2});

  auto lengths = data::from_range(std::vector<std::string>{"a", "to"}) |
                 data::map_to<shape{1}>([](const std::string& s, tensor<float, shape{1}> y) { y(0) = float(s.size()); });
  CHECK(all(lengths | data::batch<2>).x == std::vector<float>{1, 2});
}

TEST_CASE("filter keeps what the function likes, in any epoch, and has no size") {
  auto odd = counted(9) | data::filter([](pair_of, int y) { return y % 2 == 1; });
  static_assert(!std::ranges::sized_range<decltype(odd)> && !std::ranges::forward_range<decltype(odd)>);
  CHECK(all(odd | data::batch<3>).labels == std::vector{1, 3, 5, 7});
  CHECK(all(odd | data::shuffle(10) | data::repeat(3) | data::batch<5>).labels.size() == 12);
  auto large = counted(9) | data::filter([](data::sample<pair_of, int> s) { return s.x(0) > 13; });
  CHECK(all(large | data::batch<1>).labels == std::vector{7, 8});
  auto none = counted(9) | data::filter([](pair_of, int) { return false; }) | data::batch<1>;
  CHECK_THROWS_WITH_AS(none.begin(), "batch<1>: the data set is empty", strata_error);
  auto words = data::from_range(std::vector<std::string>{"a", "to", "the"}) |
               data::filter([](const std::string& word) { return word.size() != 2; }) |
               data::map([](const std::string& word) { return float(word.size()); });
  CHECK(all(words | data::batch<2>).x == std::vector<float>{1, 3});
}

TEST_CASE("what a function of the user throws names the sample") {
  const auto fail_at = [](int n) {
    return [n](pair_of x, int y) {
      if (y == n) throw std::runtime_error("bad weather");
      return std::pair(x, y);
    };
  };
  auto view = counted(9) | data::shuffle(9) | data::map(fail_at(4)) | data::batch<9>;
  CHECK_THROWS_WITH_AS(view.begin(), "map: sample 4: bad weather", strata_error);
  auto filtered = counted(9) | data::filter([](pair_of, int y) -> bool { throw std::logic_error("no " + std::to_string(y)); });
  CHECK_THROWS_WITH_AS(filtered.begin(), "filter: sample 0: no 0", strata_error);
  auto written =
      counted(9) | data::map_to<pair_shape>([](pair_of, auto) { throw std::runtime_error("paper jam"); }) | data::batch<1>;
  CHECK_THROWS_WITH_AS(written.begin(), "map: sample 0: paper jam", strata_error);
  auto wide = counted(3) | data::map([](pair_of x, int y) { return std::pair(x, long(y) << 40); }) | data::batch<3>;
  CHECK_THROWS_WITH_AS(wide.begin(), "label 1099511627776 does not fit into 32 bits", strata_error);
}

TEST_CASE("functions with captures: views can be copied and assigned") {
  std::vector<float> table{5, 6, 7};
  const auto make = [&](float plus) {
    return counted(3) | data::map([table, plus](pair_of, int y) { return table[std::size_t(y)] + plus; }) | data::batch<3>;
  };
  auto a = make(0), b = make(10);
  table.clear();
  CHECK(all(a).x == std::vector<float>{5, 6, 7});
  a = b;
  CHECK(all(a).x == std::vector<float>{15, 16, 17});
  auto c = std::move(a);
  CHECK(all(c).x == std::vector<float>{15, 16, 17});
}
