// Sources that make only the requested rows of a batch.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <strata/data.hpp>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
constexpr int n = 21;  // two batches of 8, and one of 5

/// Sample i has x = i and the label i. `made` counts the samples that have been made.
auto counting(std::atomic<int>& made) {
  return data::range(n) | data::map([&made](std::int64_t i) {
           ++made;
           return std::pair(float(i), int(i));
         });
}
row_range middle(int count) { return {count / 4, count / 2}; }

/// Checks that the middle rows of each batch are those of `expected`.
void check_middle(auto& batches, std::vector<int> expected) {
  std::vector<int> found;
  for (const auto& b : batches)
    for (int k = middle(b.count).begin; k < middle(b.count).end; ++k) {
      CHECK(b.x()[k] == float(b.labels()[k]));
      found.push_back(b.labels()[k]);
    }
  CHECK(found == expected);
}
const std::vector<int> in_order{2, 3, 10, 11, 17};

template <class V>
constexpr bool can_choose = data::detail::has_only_rows<V>;
using plain = decltype(data::range(n) | data::map([](std::int64_t i) { return std::pair(float(i), int(i)); }));
using forgiving = decltype(std::declval<plain>() | data::ignore_errors);
constexpr auto change = [](auto& batch) { batch.x()[0] = 0; };
static_assert(can_choose<decltype(std::declval<plain>() | data::batch<8>)>);
static_assert(can_choose<decltype(std::declval<plain>() | data::batch<8> | data::take(1) | data::skip(1) | data::repeat(2) |
                                  data::prefetch())>);
static_assert(!can_choose<decltype(std::declval<forgiving>() | data::batch<8>)>,
              "who does not make a sample cannot know that there is none");
static_assert(
    !can_choose<decltype(std::declval<forgiving>() | data::take(9) | data::scale(2) | data::batch<8> | data::prefetch())>);
static_assert(!can_choose<decltype(data::zip(std::declval<plain>(), std::declval<forgiving>()) |
                                   data::map([](auto, auto) { return 1.f; }) | data::batch<8>)>);
static_assert(!can_choose<decltype(std::declval<plain>() | data::batch<8> | data::map(change))>,
              "a function of the user looks at whole batches");
}  // namespace

TEST_CASE("only the rows that are wanted are made, until there is another choice") {
  std::atomic<int> made = 0;
  auto batches = counting(made) | data::batch<8>;
  batches.only_rows(middle);
  check_middle(batches, in_order);
  CHECK(made == 5);
  batches.only_rows([](int) { return row_range{}; });
  int samples = 0;
  for (const auto& b : batches) samples += b.count;
  CHECK(samples == n);
  CHECK(made == 5);
  batches.only_rows({});
  check_middle(batches, in_order);
  CHECK(made == 5 + n);
}

TEST_CASE("a copy of the batches makes all rows") {
  std::atomic<int> made = 0;
  auto batches = counting(made) | data::batch<8>;
  batches.only_rows(middle);
  auto copy = batches;
  check_middle(copy, in_order);
  CHECK(made == n);
}

TEST_CASE("random order and random numbers are those of whole batches, on any number of threads") {
  const auto source = [](int threads) {
    return data::range(n) | data::shuffle(n, {.seed = 5}) |
           data::map([](std::int64_t i) { return std::pair(float(i), int(i)); }, data::parallel(threads)) | data::batch<8>;
  };
  std::vector<int> expected;
  auto whole = source(1);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& b : whole)
      for (int k = middle(b.count).begin; k < middle(b.count).end; ++k) expected.push_back(b.labels()[k]);
  for (const int threads : {1, 3}) {
    std::vector<int> found;
    auto some = source(threads);
    some.only_rows(middle);
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& b : some)
        for (int k = middle(b.count).begin; k < middle(b.count).end; ++k) found.push_back(b.labels()[k]);
    CHECK(found == expected);
  }
}

TEST_CASE("prefetch makes them so from the next pass on") {
  std::atomic<int> made = 0;
  auto batches = counting(made) | data::batch<8> | data::take(2) | data::prefetch(3);
  batches.only_rows(middle);
  check_middle(batches, {2, 3, 10, 11});
  CHECK(made == 4);
  batches.only_rows({});
  check_middle(batches, {2, 3, 10, 11});
  CHECK(made == 20);
}

TEST_CASE("a stream goes on after samples that were not made") {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto batches = data::from_range(numbers) | data::map([](int i) { return std::pair(float(i), i); }) | data::batch<8>;
  batches.only_rows(middle);
  for (int epoch = 0; epoch < 2; ++epoch) check_middle(batches, in_order);
}
