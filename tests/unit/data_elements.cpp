#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <ranges>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data_values.hpp"
using namespace strata;
using namespace strata::core;
using test::values;

namespace {
auto slices() { return data::from_tensor_slices(data::array<float, shape{2}>({1, 2, 3, 4, 5, 6}), std::vector{7, 8, 9}); }

struct record {
  explicit record(int n) : number(n) {}  // without a default constructor
  int number;
};
}  // namespace

TEST_CASE("a loop gets x and label, which it may keep") {
  std::vector<data::stored_tensor<float, shape{2}>> kept;
  std::vector<int> labels;
  for (auto [x, label] : slices() | data::elements) kept.push_back(x), labels.push_back(label);
  CHECK(labels == std::vector{7, 8, 9});
  CHECK(kept[0](1) == 2);
  CHECK(kept[2](0) == 5);
  CHECK((slices() | data::elements).size() == 3);
  for (const auto& [x, target] : slices() | data::one_hot<10> | data::elements) {
    static_assert(std::same_as<decltype(target), const data::stored_tensor<float, shape{10}>>);
    CHECK(target(int(x(0)) / 2 + 7) == 1);
  }
}

TEST_CASE("elements of any type, also without a default constructor") {
  std::vector<int> seen;
  for (const record& r : data::from_range(std::vector{record(3), record(4)}) | data::shuffle(2) | data::elements)
    seen.push_back(r.number);
  CHECK(seen.size() == 2);
  CHECK(seen[0] + seen[1] == 7);
}

TEST_CASE("each begin() is the next epoch; copies begin by themselves") {
  auto view = data::range(30) | data::shuffle(30) | data::elements;
  test::epochs_of epochs(view);
  const auto first = epochs.next(), second = epochs.next();
  CHECK(first != second);
  CHECK(test::epochs_of(view).next() == first);
  view.set_epoch(1);
  CHECK(test::epochs_of(view).next() == second);
}

TEST_CASE("a stream that is left early gives its elements back") {
  auto stream = data::from_generator([] { return [i = 0]() mutable { return std::optional(i++); }; }) | data::shuffle(10);
  auto elements = stream | data::elements;
  for (int pass = 0; pass < 100; ++pass) {
    auto at = elements.begin();
    for (int k = 0; k < pass; ++k) ++at;
  }
  auto& pool = elements.base().base().rows().pool();
  CHECK(pool.acquire() < 12);  // as many slots as the window has places, and the one that is read
}

TEST_CASE("unbatch: the samples of batches, in the type of the batch") {
  const auto check = [](auto view) {
    std::vector<std::pair<double, int>> rows;
    for (const auto& [x, label] : view | data::elements) rows.emplace_back(x(1), label);
    CHECK(rows == std::vector<std::pair<double, int>>{{2, 7}, {4, 8}, {6, 9}});
  };
  check(slices() | data::batch<2> | data::unbatch);
  check(slices() | data::batch<3, double> | data::unbatch);
  check(slices() | data::batch<1> | data::unbatch | data::batch<2> | data::unbatch);

  auto hot = slices() | data::one_hot<10> | data::batch<2> | data::unbatch | data::batch<3> | data::prefetch();
  const samples<float> b = *hot.begin();
  CHECK(b.targets()[10 + 8] == 1);
  auto plain = data::range(5) | data::batch<2> | data::unbatch | data::shuffle(5);
  static_assert(data::rows_t<decltype(plain)>::labels == label_kind::none);
  float sum = 0;
  for (const auto& x : plain | data::elements) sum += x(0);
  CHECK(sum == 10);
  CHECK(values(data::range(5) | data::batch<2, data::drop_remainder> | data::unbatch).size() == 4);
}

TEST_CASE("unbatch goes through the epochs of the batches") {
  const auto to_float = [](auto i) { return float(i); };
  auto direct = test::epochs_of(data::range(50) | data::shuffle(50) | data::map(to_float) | data::elements);
  auto batched = test::epochs_of(data::range(50) | data::shuffle(50) | data::batch<8> | data::unbatch | data::elements);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto expected = direct.next();
    const auto seen = batched.next();
    REQUIRE(seen.size() == 50);
    for (std::size_t i = 0; i < 50; ++i) CHECK(seen[i](0) == expected[i]);
  }
}

#if !defined(__clang__) || __clang_major__ >= 16  // clang 14 cannot read libstdc++'s views
TEST_CASE("views of the standard before and after") {
  auto squares = data::from_range(std::views::iota(1, 6) | std::views::transform([](int i) { return i * i; }));
  CHECK(values(squares) == std::vector{1, 4, 9, 16, 25});
  auto odd = data::from_range(std::views::iota(1, 10) | std::views::filter([](int i) { return i % 2 == 1; }));
  CHECK(values(odd | data::filter([](int i) { return i != 5; })) == std::vector{1, 3, 7, 9});

  std::vector<int> labels;
  for (const auto& [x, label] : slices() | data::elements | std::views::take(2)) labels.push_back(label);
  CHECK(labels == std::vector{7, 8});
  std::vector<float> sums;
  for (const float sum : slices() | data::elements | std::views::filter([](const auto& s) { return s.y != 8; }) |
                             std::views::transform([](const auto& s) { return s.x(0) + s.x(1); }))
    sums.push_back(sum);
  CHECK(sums == std::vector<float>{3, 11});

  auto there_and_back = data::from_generator([] { return slices() | data::elements | std::views::drop(1); }) | data::batch<2>;
  const samples<float> b = *there_and_back.begin();
  CHECK(b.x()[3] == 6);
  CHECK(b.labels()[1] == 9);
}
#endif
