// split_dataset and k_fold: parts without a sample in common.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/k_fold.hpp>
#include <strata/data/views/split_dataset.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

using namespace strata;

namespace {

template <class V>
std::vector<int> values_of(V view) {
  std::vector<int> values;
  for (const auto i : view | data::elements) values.push_back(int(i));
  return values;
}
std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<int> first_numbers(int n, int from = 0) {
  std::vector<int> v(std::size_t(n), 0);
  std::iota(v.begin(), v.end(), from);
  return v;
}
std::string error_of(const data::split_options& options) {
  try {
    data::split_dataset(data::range(10), options);
  } catch (const strata_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("in order, by count or by fraction, as Keras rounds") {
  const auto check = [](const data::split_options& options, int left, int right) {
    const auto [a, b] = data::split_dataset(data::range(10), options);
    CHECK(values_of(a) == first_numbers(left));
    CHECK(values_of(b) == first_numbers(right, left));
    CHECK((int(a.size()) == left && int(b.size()) == right));
  };
  check({.left_size = 0.8}, 8, 2);
  check({.right_size = 3}, 7, 3);
  check({.left_size = 0.25}, 2, 8);  // of 2.5, to even
  check({.left_size = 0.35, .right_size = 0.35}, 4, 4);
  check({.left_size = 2, .right_size = 0.3}, 2, 3);
}

TEST_CASE("shuffled: a seed has one split, and both parts together are the data set") {
  const auto [a, b] = data::split_dataset(data::range(100), {.left_size = 70, .shuffle = true, .seed = 7});
  std::vector<int> all = joined(values_of(a), values_of(b));
  CHECK(all != first_numbers(100));
  std::ranges::sort(all);
  CHECK(all == first_numbers(100));
  const auto again = data::split_dataset(data::range(100), {.left_size = 70, .shuffle = true, .seed = 7});
  CHECK(values_of(again.left) == values_of(a));
  const auto other = data::split_dataset(data::range(100), {.left_size = 70, .shuffle = true, .seed = 8});
  CHECK(values_of(other.left) != values_of(a));
  // The same on every machine and in every version.
  CHECK(values_of(a | data::take(5)) == std::vector<int>{70, 92, 32, 13, 4});
}

TEST_CASE("a part is a data set: stages follow, it can be split again, and networks train on it") {
  const auto digits = data::synthetic_digits(120, 1);
  const auto [train, rest] = data::split_dataset(digits, {.left_size = 0.5, .shuffle = true});
  const auto [validate, test] = data::split_dataset(rest, {.left_size = 0.5});
  CHECK((train.size() == 60 && validate.size() == 30 && test.size() == 30));
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{},
                accuracy{}};
  const training_history past =
      model.fit(train | data::shuffle(60) | data::batch<20>, epochs(2), validation(validate | data::batch<30>), verbosity::off);
  CHECK(past["val_loss"].size() == 2);
  CHECK(model.predict(test | data::batch<15>).size() == 30);
  CHECK(data::detail::order_of(rest).ends_with(" | split_dataset(right 60 of 120, seed 0)"));
}

TEST_CASE("sizes that make no sense") {
  CHECK(error_of({}) == "split_dataset: give left_size, right_size or both");
  CHECK(error_of({.left_size = 0}) == "split_dataset: a part of 0 samples, but the data set has 10");
  CHECK(error_of({.left_size = 10}) == "split_dataset: a part of 10 samples, but the data set has 10");
  CHECK(error_of({.left_size = ~0ull}) == "split_dataset: a part of 9223372036854775807 samples, but the data set has 10");
  CHECK(error_of({.right_size = 1.0}) == "split_dataset: a fraction must be above 0 and below 1, not 1");
  CHECK(error_of({.left_size = 7, .right_size = 0.4}) == "split_dataset: parts of 7 and 4 samples, but the data set has 10");
  CHECK(error_of({.left_size = 0.01}) == "split_dataset: parts of 0 and 10 samples, but the data set has 10");
}

TEST_CASE("k_fold: each element is held back once, and the others train") {
  for (const bool shuffle : {false, true}) {
    std::vector<int> held_back;
    const auto folds = data::k_fold(data::range(11), 3, {.shuffle = shuffle, .seed = 7});
    REQUIRE(folds.size() == 3);
    for (const auto& [train, test] : folds) {
      CHECK((test.size() == 3 || test.size() == 4));
      std::vector<int> all = joined(values_of(train), values_of(test));
      std::ranges::sort(all);
      CHECK(all == first_numbers(11));
      held_back = joined(held_back, values_of(test));
    }
    CHECK((held_back == first_numbers(11)) != shuffle);
    std::ranges::sort(held_back);
    CHECK(held_back == first_numbers(11));
    const auto again = data::k_fold(data::range(11), 3, {.shuffle = shuffle, .seed = 7});
    CHECK(values_of(again[1].left) == values_of(folds[1].left));
  }
  CHECK(data::k_fold(data::range(4), 2)[1].left.order() == "k_fold(all but 1 of 2, 4 samples)");
  for (const std::size_t folds : {0u, 1u, 5u}) CHECK_THROWS_AS(data::k_fold(data::range(4), folds), strata_error);
}
