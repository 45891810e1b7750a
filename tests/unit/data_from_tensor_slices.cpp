#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <list>
#include <ranges>
#include <span>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/scale.hpp>
#include <vector>
using namespace strata;

namespace {
const std::vector<float> six{1, 2, 3, 4, 5, 6};
using pairs = data::array<float, shape{2}>;

using unlabelled = decltype(data::from_tensor_slices(pairs(six)));
using sparse = decltype(data::from_tensor_slices(pairs(six), std::vector<int>()));
using dense = decltype(data::from_tensor_slices(pairs(six), data::array<double, shape{3}>()));
static_assert(data::sample_view<unlabelled> && data::sample_view<sparse> && data::sample_view<dense>);
static_assert(std::ranges::random_access_range<sparse> && std::ranges::random_access_range<const sparse>);
static_assert(std::ranges::sized_range<sparse> && std::ranges::common_range<sparse> && std::ranges::borrowed_range<sparse>);
static_assert(!std::ranges::contiguous_range<sparse>);
static_assert(data::rows_t<unlabelled>::labels == label_kind::none);
static_assert(data::rows_t<sparse>::labels == label_kind::sparse && data::rows_t<sparse>::target_shape == shape{});
static_assert(data::rows_t<dense>::labels == label_kind::dense && data::rows_t<dense>::target_shape == shape{3});
static_assert(data::rows_t<sparse>::sample_shape == shape{2});

using scaled = decltype(std::declval<sparse>() | data::scale(2));
using hot = decltype(std::declval<sparse>() | data::one_hot<4>);
static_assert(data::sample_view<scaled> && std::ranges::random_access_range<const scaled> && std::ranges::sized_range<scaled>);
static_assert(data::sample_view<hot> && std::ranges::random_access_range<const hot> && std::ranges::sized_range<hot>);
static_assert(data::rows_t<hot>::labels == label_kind::dense && data::rows_t<hot>::target_shape == shape{4});

template <class T, class V>
struct written {
  std::vector<T> x = std::vector<T>(std::size_t{data::rows_t<V>::sample_shape.size()});
  std::int32_t label = -1;
  std::vector<T> target = std::vector<T>(std::size_t{data::rows_t<V>::target_shape.size()});
};
template <class T = float, class V>
written<T, V> sample(const V& view, std::uint32_t i) {
  written<T, V> w;
  view.rows().write({i}, {i}, data::sample_place<T>{w.x.data(), &w.label, w.target.data()}, std::identity{});
  return w;
}
std::vector<float> row(const auto& view, std::uint32_t i) { return sample(view, i).x; }
}  // namespace

TEST_CASE("an array is made of whole samples") {
  const pairs a(six);
  CHECK(a.size() == 3);
  CHECK(a.row(1)[1] == 4);
  CHECK(a[2](0) == 5);
  CHECK(a.values().size() == 6);
  CHECK_THROWS_WITH_AS((data::array<float, shape{2, 2, 1}>(six)),
                       "data::array: 6 values are not a whole number of samples of shape (2, 2, 1), 4 values each", strata_error);
}

TEST_CASE("an array owns a vector, shares it with its copies, and borrows a span") {
  auto* made = new pairs(six);
  const pairs copy = *made;
  const float* where = made->row(0);
  delete made;
  CHECK(copy.row(0) == where);
  CHECK(copy.row(2)[1] == 6);

  const pairs borrowed{std::span<const float>(six)};
  CHECK(borrowed.row(0) == six.data());

  const auto shared = std::make_shared<const float>(7.f);
  const data::array<float, shape{}> scalar(shared, 1);
  CHECK(shared.use_count() == 2);
  CHECK(*scalar.row(0) == 7);
}

TEST_CASE("a view keeps its samples alive") {
  auto view = [] { return data::from_tensor_slices(pairs(std::vector<float>(six)), std::vector<int>{7, 8, 9}); }();
  CHECK(row(view, 2) == std::vector<float>{5, 6});
  CHECK(view.rows().label({2}) == 9);
  CHECK(sample(view, 2).label == 9);
}

TEST_CASE("from_tensor_slices yields sample numbers") {
  const auto view = data::from_tensor_slices(pairs(six));
  using numbers = std::vector<data::sample_index>;
  CHECK((numbers(view.begin(), view.end()) == numbers{{0}, {1}, {2}}));
  auto later = view;
  later.set_epoch(7);
  CHECK((numbers(later.begin(), later.end()) == numbers{{0, 7}, {1, 7}, {2, 7}}));
  CHECK(view.size() == 3);
  CHECK(view.begin()[2].row == 2);
  CHECK((*(view.end() - 3)).row == 0);
  CHECK(view.end() - view.begin() == 3);
  CHECK(view.begin() + 1 < view.end());
  auto i = view.begin();
  CHECK((*i++).row == 0);
  CHECK((*i--).row == 1);
  CHECK((*i).row == 0);
}

TEST_CASE("labels are integers of any kind, or rows") {
  const std::vector<std::uint8_t> bytes{1, 0, 255};
  CHECK(data::from_tensor_slices(pairs(six), std::span(bytes)).rows().label({2}) == 255);
  const std::vector<char> characters{'a', 'b', 'c'};
  CHECK(data::from_tensor_slices(pairs(six), characters).rows().label({1}) == 'b');

  const auto view = data::from_tensor_slices(pairs(six), data::array<double, shape{3}>({1, 2, 3, 4, 5, 6, 7, 8, 9.5}));
  CHECK(sample(view, 2).target == std::vector<float>{7, 8, 9.5f});
  const data::array<std::int64_t, shape{}> classes(std::vector<std::int64_t>{4, 5, 6});  // as load_npy reads them
  CHECK(data::from_tensor_slices(pairs(six), classes).rows().label({2}) == 6);
}

TEST_CASE("vectors, spans and ranges of numbers and arrays are samples, structs of them samples and labels") {
  const std::vector<std::array<float, 2>> points{{1, 2}, {3, 4}};
  CHECK(row(data::from_tensor_slices(points), 1) == std::vector<float>{3, 4});
  const auto borrowed = data::from_tensor_slices(std::span<const std::array<float, 2>>(points));
  CHECK(borrowed.rows().x().row(0) == points[0].data());
  CHECK(row(data::from_tensor_slices(std::span(points)), 1) == std::vector<float>{3, 4});

  std::vector<double> many{1, 2, 3};
  const double* where = many.data();
  const auto moved =
      data::from_tensor_slices(std::move(many), std::vector<std::array<std::int8_t, 2>>{{1, -1}, {2, -2}, {3, -3}});
  CHECK(moved.rows().x().row(0) == where);
  CHECK(sample(moved, 2).x == std::vector<float>{3});
  CHECK(sample(moved, 2).target == std::vector<float>{3, -3});
  static_assert(data::rows_t<decltype(moved)>::sample_shape == shape{1});
  CHECK(sample(data::from_tensor_slices(std::list<int>{4, 5}, std::list<float>{.5f, .25f}), 1).target ==
        std::vector<float>{.25f});

  using image = std::array<std::array<std::uint8_t, 3>, 2>;
  struct table {
    std::vector<image> images;
    std::vector<long> classes;
  };
  const auto set = data::from_tensor_slices(table{{image{{{1, 2, 3}, {4, 5, 6}}}, image{}}, {7, 8}});
  static_assert(data::rows_t<decltype(set)>::sample_shape == shape{2, 3});
  CHECK(sample(set, 0).x == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(sample(set, 1).label == 8);
  CHECK(sample(data::from_tensor_slices(std::pair(points, std::vector<int>{5, 6})), 1).label == 6);
}

TEST_CASE("from_tensor_slices refuses what does not fit together") {
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(pairs()), "from_tensor_slices: the data set is empty", strata_error);
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(pairs(six), std::vector<int>{1, 2}),
                       "from_tensor_slices: 3 samples, but 2 labels", strata_error);
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(pairs(six), pairs({1, 2})), "from_tensor_slices: 3 samples, but 1 labels",
                       strata_error);
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(pairs(six), std::vector<long>{1, 1L << 40, 2}),
                       "sparse labels: label 1099511627776 of sample 1 does not fit into 32 bits", strata_error);
  const data::array<float, shape{}> too_many(std::make_shared<const float>(), std::size_t{1} << 32);
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(too_many),
                       "from_tensor_slices: 4294967296 samples are more than a sample_index can represent", strata_error);
}

TEST_CASE("scale multiplies in the type of the batch, also twice") {
  const auto view = data::from_tensor_slices(data::array<std::uint8_t, shape{2}>({0, 255, 51, 102})) | data::scale(1.0 / 255);
  CHECK(row(view, 0) == std::vector<float>{0, 255 * float(1.0 / 255)});
  CHECK(sample<double>(view, 1).x[0] == 51 * (1.0 / 255));
  CHECK(row(view | data::scale(255) | data::scale(2), 1)[1] == doctest::Approx(204));
  CHECK(row(data::scale(view, 10), 1)[0] == doctest::Approx(2));
}

TEST_CASE("rows of many cache lines and with a rest are converted completely") {
  std::vector<std::uint8_t> bytes(3 * 301);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  const auto view = data::from_tensor_slices(data::array<std::uint8_t, shape{7, 43}>(bytes));
  const std::vector<float> x = row(view, 2);
  for (std::size_t i = 0; i < 301; ++i) REQUIRE(x[i] == bytes[602 + i]);
}

TEST_CASE("one_hot makes dense labels and refuses classes that do not exist") {
  const auto view = data::from_tensor_slices(pairs(six), std::vector<int>{0, 3, 1});
  const auto hot = sample(view | data::one_hot<4>, 1);
  CHECK(hot.target == std::vector<float>{0, 0, 0, 1});
  CHECK(hot.x == std::vector<float>{3, 4});
  CHECK_THROWS_WITH_AS(view | data::one_hot<3>, "one_hot<3>: label 3 of sample 1 is not in 0 ... 2", strata_error);
  CHECK_THROWS_WITH_AS(data::from_tensor_slices(pairs(six), std::vector<int>{0, 0, -1}) | data::one_hot<3>,
                       "one_hot<3>: label -1 of sample 2 is not in 0 ... 2", strata_error);
}

TEST_CASE("to_categorical") {
  const data::array<float, shape{3}> rows = data::to_categorical<3>(std::vector<std::uint8_t>{2, 0});
  CHECK(std::vector<float>(rows.values().begin(), rows.values().end()) == std::vector<float>{0, 0, 1, 1, 0, 0});
  CHECK_THROWS_WITH_AS(data::to_categorical<3>(std::vector<long>{0, 3}),
                       "to_categorical<3>: label 3 of sample 1 is not in 0 ... 2", strata_error);
}

TEST_CASE("stages compose before there is data") {
  const auto prepare = data::scale(2) | data::one_hot<4>;
  const auto view = data::from_tensor_slices(pairs(six), std::vector<int>{0, 3, 1}) | prepare;
  CHECK(row(view, 0) == std::vector<float>{2, 4});
  CHECK(view.size() == 3);
}
