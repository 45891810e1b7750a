#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <ranges>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
auto numbers(std::size_t n) { return data::from_tensor_slices(data::array<float, shape{}>(std::vector<float>(n))); }

using order = std::vector<std::uint32_t>;
order pass(auto& view) {
  order all;
  for (const data::sample_index i : view) all.push_back(i.row);
  return all;
}
order sorted(order o) {
  std::ranges::sort(o);
  return o;
}

using source = decltype(numbers(1));
template <class V>
constexpr bool is_single_pass = data::sample_view<V> && std::ranges::input_range<V> && !std::ranges::forward_range<V> &&
                                std::ranges::sized_range<V> && !std::ranges::range<const V>;
static_assert(is_single_pass<decltype(numbers(1) | data::shuffle(1))>);
static_assert(is_single_pass<decltype(numbers(1) | data::repeat(1))>);
}  // namespace

TEST_CASE("shuffle is a permutation, another one in each epoch, and the same ones again") {
  auto view = numbers(1000) | data::shuffle(1000, {.seed = 5});
  const order first = pass(view), second = pass(view);
  CHECK(view.size() == 1000);
  CHECK(sorted(first) == pass(*std::make_unique<source>(numbers(1000))));
  CHECK(sorted(second) == sorted(first));
  CHECK(first != sorted(first));
  CHECK(first != second);

  auto again = numbers(1000) | data::shuffle(1000, {.seed = 5});
  CHECK(pass(again) == first);
  CHECK(pass(again) == second);
  auto other = numbers(1000) | data::shuffle(1000, {.seed = 6});
  CHECK(pass(other) != first);
}

TEST_CASE("the window grows where the number of samples is not known") {
  auto view = data::range(5'000) | data::filter([](auto i) { return i % 2 == 0; }) | data::shuffle(10'000, {.seed = 5});
  const order first = pass(view), second = pass(view);
  CHECK(first.size() == 2'500);
  CHECK(sorted(first) == sorted(second));
  const order all = sorted(first);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  CHECK(first != second);
}

TEST_CASE("set_epoch decides the order, and counting goes on from there") {
  auto view = numbers(100) | data::shuffle(100);
  const std::vector<order> epochs{pass(view), pass(view), pass(view)};
  view.set_epoch(1);
  CHECK(pass(view) == epochs[1]);
  CHECK(pass(view) == epochs[2]);
  view.set_epoch(0);
  CHECK(pass(view) == epochs[0]);
}

TEST_CASE("an epoch that is left early counts") {
  auto view = numbers(100) | data::shuffle(100);
  auto counting = view;
  pass(counting);
  const order second = pass(counting);
  view.set_epoch(0);
  view.begin();
  CHECK(pass(view) == second);
}

TEST_CASE("reshuffle_each_iteration = false repeats the order of epoch 0") {
  auto changing = numbers(100) | data::shuffle(100, {.seed = 3});
  auto fixed = numbers(100) | data::shuffle(100, {.seed = 3, .reshuffle_each_iteration = false});
  const order first = pass(changing);
  CHECK(pass(fixed) == first);
  CHECK(pass(fixed) == first);
  fixed.set_epoch(9);
  CHECK(pass(fixed) == first);
}

TEST_CASE("copies and moved views start at the same epoch, with a position of their own") {
  auto view = numbers(100) | data::shuffle(100);
  const order first = pass(view);
  auto copy = view;
  auto i = view.begin();
  ++i;
  const order second = pass(copy);
  auto moved = std::move(copy);
  copy = numbers(10) | data::shuffle(10);
  CHECK(second != first);
  CHECK((*i).row == second[1]);
  CHECK(sorted(pass(moved)) == sorted(first));
  CHECK(pass(copy).size() == 10);
}

TEST_CASE("a full buffer gives each of the permutations equally often") {
  auto view = numbers(4) | data::shuffle(10);
  std::map<order, int> seen;
  constexpr int epochs = 24'000;
  for (int e = 0; e < epochs; ++e) ++seen[pass(view)];
  CHECK(seen.size() == 24);
  double chi2 = 0;
  for (const auto& [o, n] : seen) chi2 += (n - epochs / 24.) * (n - epochs / 24.) / (epochs / 24.);
  CHECK(chi2 < 49.7);  // 23 degrees of freedom, p = 0.001
  CHECK(chi2 > 7.5);   // equally unlikely: too uniform to be random
}

TEST_CASE("a small buffer is a window: no sample comes more than buffer_size - 1 places early, many come late") {
  constexpr std::size_t n = 2000, buffer = 50;
  auto view = numbers(n) | data::shuffle(buffer);
  const order o = pass(view);
  CHECK(sorted(o) == pass(*std::make_unique<source>(numbers(n))));
  double delay = 0;
  for (std::size_t place = 0; place < n; ++place) {
    REQUIRE(o[place] < place + buffer);
    delay += std::max(0., double(place) - o[place]);
  }
  CHECK(delay / n > 10);
  CHECK(delay / n < buffer);
  // While the window is full each sample leaves it with probability 1 / buffer: the first place is uniform over the window.
  std::vector<int> first(buffer);
  for (int e = 0; e < 5000; ++e) ++first[(*view.begin()).row];
  double chi2 = 0;
  for (const int c : first) chi2 += (c - 100.) * (c - 100.) / 100.;
  CHECK(chi2 < 85.4);  // 49 degrees of freedom, p = 0.001
  CHECK(chi2 > 23.9);
}

TEST_CASE("a buffer of 1 keeps the order, one of 0 is refused") {
  auto view = numbers(10) | data::shuffle(1);
  CHECK(pass(view) == sorted(pass(view)));
  CHECK_THROWS_WITH_AS(numbers(10) | data::shuffle(0), "shuffle: buffer_size is 0, it must be at least 1", strata_error);
}

TEST_CASE("numbers below a bound come from all of it") {
  strata::detail::random_draws draws(philox{1}, 0);
  for (const std::uint32_t bound : {1u, 2u, 3u, 1000u, 0xFFFFFFFFu}) {
    std::uint32_t least = ~0u, most = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t d = draws.below(bound);
      REQUIRE(d < bound);
      least = std::min(least, d), most = std::max(most, d);
    }
    CHECK(least <= bound / 1000);
    CHECK(most >= bound - 1 - bound / 1000);
  }
}

TEST_CASE("no number is favoured, even where 2^32 words do not divide evenly") {
  strata::detail::random_draws draws(philox{2}, 0);
  int thirds[3] = {};
  for (int i = 0; i < 30'000; ++i) ++thirds[draws.below(3u << 30) % 3];  // a plain multiplication gives 15,000, 7,500, 7,500
  for (const int n : thirds) CHECK(std::abs(n - 10'000) < 300);
}

TEST_CASE("take and skip share the samples out, also when there are too few") {
  auto head = numbers(10) | data::take(3), all = numbers(3) | data::take(5), none = numbers(3) | data::take(0);
  CHECK(pass(head) == order{0, 1, 2});
  CHECK(pass(head) == order{0, 1, 2});
  CHECK(head.size() == 3);
  CHECK(pass(all) == order{0, 1, 2});
  CHECK(all.size() == 3);
  CHECK(pass(none).empty());
  auto tail = numbers(5) | data::skip(3), nothing = numbers(3) | data::skip(5);
  CHECK(pass(tail) == order{3, 4});
  CHECK(tail.size() == 2);
  CHECK(pass(nothing).empty());
  CHECK(nothing.size() == 0);

  auto mixed = numbers(20) | data::shuffle(20, {.seed = 1});
  auto front = mixed | data::take(5);
  auto back = mixed | data::skip(5);
  order both = pass(front);
  for (const auto i : back) both.push_back(i.row);
  CHECK(both == pass(mixed));
}

TEST_CASE("repeat is several epochs of what is before it") {
  auto once = numbers(5) | data::shuffle(5, {.seed = 2});
  order expected = pass(once);
  const order second = pass(once), third = pass(once), fourth = pass(once);
  expected.insert(expected.end(), second.begin(), second.end());
  auto twice = numbers(5) | data::shuffle(5, {.seed = 2}) | data::repeat(2);
  CHECK(twice.size() == 10);
  CHECK(pass(twice) == expected);
  twice.set_epoch(1);
  order next = third;
  next.insert(next.end(), fourth.begin(), fourth.end());
  CHECK(pass(twice) == next);
  CHECK_THROWS_WITH_AS(numbers(5) | data::repeat(0), "repeat: count is 0, it must be at least 1", strata_error);
}
