#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <ranges>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
/// Sample i is (10 i, 10 i + 1), its label i + 100.
auto counted(int n) {
  std::vector<std::uint8_t> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i)
    x.push_back(static_cast<std::uint8_t>(10 * i)), x.push_back(static_cast<std::uint8_t>(10 * i + 1)), y.push_back(i + 100);
  return data::from_tensor_slices(data::array<std::uint8_t, shape{1, 2}>(std::move(x)), y);
}

template <class V>
constexpr bool is_single_pass = batch_source<V> && std::ranges::view<V> && std::ranges::input_range<V> &&
                                !std::ranges::forward_range<V> && std::ranges::sized_range<V> && !std::ranges::range<const V>;
using plain = decltype(counted(1) | data::batch<4>);
using exact = decltype(counted(1) | data::batch<4, double, data::drop_remainder>);
using hot = decltype(counted(1) | data::one_hot<200> | data::shuffle(9) | data::batch<4>);
static_assert(is_single_pass<plain> && is_single_pass<exact> && is_single_pass<hot>);
static_assert(plain::batch_size == 4 && plain::sample_shape == shape{1, 2} && plain::labels == label_kind::sparse);
static_assert(plain::target_shape == shape{} && hot::labels == label_kind::dense && hot::target_shape == shape{200});
static_assert(std::same_as<plain::value_type, samples<float>> && std::same_as<exact::value_type, samples<double>>);
static_assert(std::same_as<std::ranges::range_value_t<exact>, samples<double>>);
static_assert(std::same_as<exact, decltype(counted(1) | data::batch<4, data::drop_remainder, double>)>);

std::vector<int> sizes(auto&& view) {
  std::vector<int> n;
  for (const auto& b : view) n.push_back(b.count);
  return n;
}
std::vector<std::int32_t> all_labels(auto& view) {
  std::vector<std::int32_t> y;
  for (const auto& b : view) y.insert(y.end(), b.labels(), b.labels() + b.count);
  return y;
}
}  // namespace

TEST_CASE("batches are rows, converted, with their labels; the last one may be short") {
  auto view = counted(10) | data::scale(0.5) | data::batch<4>;
  CHECK(view.size() == 3);
  int next = 0;
  for (const samples<float>& b : view) {
    CHECK(b.count == (next < 8 ? 4 : 2));
    CHECK(b.targets() == nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(b.x()) % 64 == 0);
    for (int k = 0; k < b.count; ++k, ++next) {
      CHECK(2 * b.x()[2 * k] == float(10 * next));
      CHECK(2 * b.x()[2 * k + 1] == float(10 * next + 1));
      CHECK(b.labels()[k] == next + 100);
    }
  }
  CHECK(next == 10);
}

TEST_CASE("dense labels and none") {
  auto hot = counted(3) | data::one_hot<103> | data::batch<2>;
  for (const samples<float>& b : hot) {
    CHECK(b.labels() == nullptr);
    for (int k = 0; k < b.count; ++k)
      for (int c = 0; c < 103; ++c) CHECK(b.targets()[103 * k + c] == (c == 100 + int(b.x()[2 * k]) / 10));
  }
  auto bare = data::from_tensor_slices(data::array<double, shape{}>({1, 2, 3})) | data::batch<3, double>;
  const samples<double> b = *bare.begin();
  CHECK(b.labels() == nullptr);
  CHECK(b.targets() == nullptr);
  CHECK(b.x()[2] == 3);
}

TEST_CASE("sizes with and without drop_remainder") {
  CHECK(sizes(counted(10) | data::batch<4>) == std::vector{4, 4, 2});
  CHECK(sizes(counted(10) | data::batch<4, data::drop_remainder>) == std::vector{4, 4});
  CHECK((counted(10) | data::batch<4, data::drop_remainder>).size() == 2);
  CHECK(sizes(counted(8) | data::batch<4>) == std::vector{4, 4});
  CHECK(sizes(counted(8) | data::batch<4, data::drop_remainder>) == std::vector{4, 4});
  CHECK((counted(8) | data::batch<4>).size() == 2);
  CHECK((counted(9) | data::batch<4>).size() == 3);
  CHECK((counted(8) | data::batch(4)).size() == 2);
  CHECK(sizes(counted(5) | data::batch<1>) == std::vector{1, 1, 1, 1, 1});
  CHECK(sizes(counted(5) | data::batch<5>) == std::vector{5});
}

TEST_CASE("a size that is known at run time only makes the same batches") {
  const auto check = [](auto known, auto run_time) {
    static_assert(batch_source<decltype(run_time)>);
    CHECK(batch_size_of(known) == 4);
    CHECK(batch_size_of(run_time) == 4);
    CHECK(known.size() == run_time.size());
    CHECK(sizes(known) == sizes(run_time));
    CHECK(all_labels(known) == all_labels(run_time));  // of the next epoch
    known.resume_at({3, 8}), run_time.resume_at({3, 8});
    CHECK(all_labels(known) == all_labels(run_time));
  };
  const auto some = counted(10) | data::shuffle(10);
  check(some | data::batch<4>, some | data::batch(4));
  check(some | data::batch<4, double, data::drop_remainder>, some | data::batch<double, data::drop_remainder>(4));
  check(some | data::batch<4> | data::skip(1), some | data::batch(4) | data::skip(1));
  check(some | data::batch<4> | data::repeat(2), some | data::batch(4) | data::repeat(2));
  check(some | data::batch<4> | data::prefetch(data::autotune), some | data::batch(4) | data::prefetch(data::autotune));
  check(some | (data::skip(1) | data::batch<4>), some | (data::skip(1) | data::batch(4)));
  CHECK_THROWS_WITH_AS(some | data::batch(0), "batch(0): a batch has at least one sample", strata_error);
  CHECK_THROWS_WITH_AS(some | data::batch(11), "batch(11): a batch of 11 samples is larger than the data set, which has 10",
                       strata_error);
}

TEST_CASE("a batch that is larger than the data set is refused, and so is an empty data set") {
  CHECK_THROWS_WITH_AS(counted(10) | data::batch<64>,
                       "batch<64>: a batch of 64 samples is larger than the data set, which has 10", strata_error);
  CHECK_THROWS_WITH_AS(counted(10) | data::skip(10) | data::batch<64>, "batch<64>: the data set is empty", strata_error);
}

namespace {
/// A view without a size.
struct endless_hope : decltype(counted(3)) {
  using base = decltype(counted(3));
  explicit endless_hope(base b) : base(std::move(b)) {}
  void size() const = delete;
};
static_assert(data::sample_view<endless_hope> && !data::detail::sized<endless_hope>);
}  // namespace

TEST_CASE("without a size, too few samples are noticed at the first batch") {
  auto view = endless_hope(counted(3)) | data::shuffle(10) | data::batch<4>;
  CHECK_THROWS_WITH_AS(view.begin(), "batch<4>: a batch of 4 samples is larger than the data set, which has 3", strata_error);
  CHECK(sizes(endless_hope(counted(3)) | data::take(9) | data::batch<2>) == std::vector{2, 1});
}

TEST_CASE("epochs: counted, set, reproducible") {
  auto view = counted(20) | data::shuffle(20, {.seed = 1}) | data::batch<8>;
  const auto first = all_labels(view), second = all_labels(view);
  CHECK(first != second);
  view.set_epoch(0);
  CHECK(all_labels(view) == first);
  CHECK(all_labels(view) == second);
}

TEST_CASE("resume_at goes on where an epoch was left") {
  auto view = counted(20) | data::shuffle(7, {.seed = 1}) | data::batch<8>;
  view.set_epoch(3);
  const auto whole = all_labels(view), next = all_labels(view);
  auto resumed = counted(20) | data::shuffle(7, {.seed = 1}) | data::batch<8>;
  resumed.resume_at({.epoch = 3, .samples = 16});
  CHECK(resumed.where() == data_position{3, 16});
  CHECK(all_labels(resumed) == std::vector(whole.begin() + 16, whole.end()));
  CHECK(all_labels(resumed) == next);
  resumed.resume_at({.epoch = 3, .samples = 20});
  CHECK(all_labels(resumed).empty());
}

TEST_CASE("check_finite names sample and place") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto with = [](float bad) {
    std::vector<float> x(60, std::numeric_limits<float>::max());
    x[3 * 7 + 2] = bad;
    return data::from_tensor_slices(data::array<float, shape{3}>(std::move(x)));
  };
  CHECK(sizes(with(std::numeric_limits<float>::denorm_min()) | data::check_finite | data::batch<20>) == std::vector{20});
  CHECK_THROWS_WITH_AS(sizes(with(nan) | data::check_finite | data::shuffle(20) | data::batch<4>),
                       "check_finite: value 2 of sample 7 is NaN", strata_error);
  CHECK_THROWS_WITH_AS(sizes(with(-infinity) | data::check_finite | data::batch<20, double>),
                       "check_finite: value 2 of sample 7 is infinite", strata_error);
  CHECK_THROWS_WITH_AS(sizes(with(0) | data::scale(10) | data::check_finite | data::batch<20>),
                       "check_finite: value 0 of sample 0 is infinite", strata_error);
  CHECK((*(with(4) | data::check_finite | data::scale(0.5) | data::batch<20>).begin()).x()[3 * 7 + 2] == 2);

  const auto targets =
      data::from_tensor_slices(data::array<float, shape{}>({1, 2}), data::array<float, shape{2}>({1, 2, 3, nan}));
  CHECK_THROWS_WITH_AS(sizes(targets | data::check_finite | data::batch<2>), "check_finite: target 1 of sample 1 is NaN",
                       strata_error);

  auto view = with(nan) | data::batch<20>;
  CHECK_THROWS_WITH_AS(data::check_finite(*view.begin(), view.sample_shape),
                       "check_finite: value 2 of sample 7 of the batch is NaN", strata_error);
  auto labelled = targets | data::batch<2>;
  CHECK_THROWS_WITH_AS(data::check_finite(*labelled.begin(), labelled.sample_shape, labelled.target_shape),
                       "check_finite: target 1 of sample 1 of the batch is NaN", strata_error);
  data::check_finite(*labelled.begin(), labelled.sample_shape);
}

TEST_CASE("batches of indices name the samples that batches of rows have, from any position on") {
  auto rows = counted(23) | data::scale(0.5) | data::shuffle(9) | data::batch<4>;
  auto indices = rows;
  const stored_samples set = indices.stored().value();
  CHECK(set.count == 23);
  CHECK(set.scale_count == 1);
  const auto check_pass = [&] {
    indices.by_index();
    auto at = rows.begin();
    for (const samples<float>& batch : indices) {
      REQUIRE(at != rows.end());
      REQUIRE(batch.count == (*at).count);
      REQUIRE(batch.x() == nullptr);
      for (int n = 0; n < batch.count; ++n) {
        const sample_index i = batch.stored[n];
        CHECK(stored_number<float>(set.x.type, set.row(set.x, i.row), 1) * 0.5f == (*at).x()[2 * n + 1]);
        CHECK(stored_number<int>(set.truth.type, set.row(set.truth, i.row), 0) == (*at).labels()[n]);
      }
      CHECK(indices.where() == rows.where());
      ++at;
    }
    CHECK(at == rows.end());
  };
  check_pass();
  check_pass();
  rows.resume_at({1, 12}), indices.resume_at({1, 12});
  check_pass();
  CHECK((*indices.begin()).x() != nullptr);
}
