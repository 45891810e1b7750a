#include <doctest/doctest.h>

#include <algorithm>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <vector>
using namespace strata;

namespace {
std::vector<float> all(auto&& source) {
  std::vector<float> x;
  for (const auto& batch : source) x.insert(x.end(), batch.x(), batch.x() + batch.count);
  return x;
}
std::vector<float> sorted(std::vector<float> x) {
  std::ranges::sort(x);
  return x;
}
std::vector<float> upto(int n) {
  std::vector<float> x;
  for (int k = 0; k < n; ++k) x.push_back(float(k));
  return x;
}
/// A generator of 0 ... n - 1 that starts anew in each epoch.
auto counting(int n) {
  return data::from_generator([n] { return [n, k = 0]() mutable { return k < n ? std::optional(float(k++)) : std::nullopt; }; });
}
/// A sample that counts its copies: the use count of `life` is their number.
struct counted {
  std::shared_ptr<int> life;
  float value = 0;
};
}  // namespace

TEST_CASE("a random-access range is random access and sized; it is moved in") {
  auto view = data::from_range(std::vector<float>{3, 1, 2});
  static_assert(std::ranges::random_access_range<const decltype(view)> && data::sample_view<decltype(view)>);
  CHECK(view.size() == 3);
  CHECK(all(view | data::batch<2>) == std::vector<float>{3, 1, 2});
  CHECK(sorted(all(view | data::shuffle(3) | data::batch<2>)) == std::vector<float>{1, 2, 3});
  CHECK_THROWS_WITH_AS(data::from_range(std::vector<float>{}), "from_range: the data set is empty", strata_error);
}

TEST_CASE("a forward range is a stream that begins again in each epoch") {
  auto view = data::from_range(std::list<float>{3, 1, 2});
  static_assert(!std::ranges::forward_range<decltype(view)> && !std::ranges::sized_range<decltype(view)>);
  auto batches = view | data::batch<2>;
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(all(batches) == std::vector<float>{3, 1, 2});
  const std::map<std::string, int> ages{{"Ada", 36}, {"Bob", 7}};
  auto people = data::from_range(ages) | data::map([](const auto& p) { return std::pair(float(p.second), int(p.first.size())); });
  CHECK(all(people | data::batch<2>) == std::vector<float>{36, 7});
}

TEST_CASE("a generator: functions that return the next element, or a range") {
  auto batches = counting(5) | data::batch<2>;
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(all(batches) == upto(5));
  auto lists = data::from_generator([] { return std::forward_list<float>{1, 2}; }) | data::batch<2>;
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(all(lists) == std::vector<float>{1, 2});
}

#if !defined(__clang__) || __clang_major__ > 15
TEST_CASE("the standard's views are sources") {
  auto squares = data::from_range(std::views::iota(0, 10) | std::views::transform([](int i) { return float(i * i); }));
  static_assert(std::ranges::random_access_range<decltype(squares)>);
  CHECK(all(squares | data::batch<10>)[9] == 81);
  auto even = data::from_generator([] {
    return std::views::iota(0, 10) | std::views::filter([](int i) { return i % 2 == 0; }) |
           std::views::transform([](int i) { return float(i); });
  });
  CHECK(all(even | data::batch<5>) == std::vector<float>{0, 2, 4, 6, 8});
}
#endif

TEST_CASE("elements wait where they are until they are used: all stages, any buffer") {
  for (const std::size_t buffer : {1u, 2u, 7u, 100u}) {
    auto view = counting(50) | data::filter([](float x) { return int(x) % 3 != 0; }) | data::scale(2) | data::shuffle(buffer) |
                data::repeat(3) | data::batch<4>;
    std::vector<float> expected;
    for (int k = 0; k < 50; ++k)
      if (k % 3 != 0) expected.insert(expected.end(), 3, 2.f * float(k));
    for (int epoch = 0; epoch < 3; ++epoch) CHECK(sorted(all(view)) == expected);
  }
  CHECK(all(counting(50) | data::skip(10) | data::take(5) | data::batch<3>) == std::vector<float>{10, 11, 12, 13, 14});
}

TEST_CASE("no more elements live than are in use, also if epochs are left early") {
  const auto life = std::make_shared<int>();
  auto view = data::from_generator([&] {
                return [&life, k = 0]() mutable { return k < 1000 ? std::optional(counted{life, float(k++)}) : std::nullopt; };
              }) |
              data::map([](const counted& c) { return c.value; }) | data::shuffle(20) | data::repeat(2) | data::batch<8>;
  long most = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    int batches = 0;
    for (auto at = view.begin(); at != view.end() && batches < epoch * 9; ++at, ++batches)
      most = std::max(most, life.use_count());
  }
  CHECK(most < 60);  // 20 in the window, 8 + 4 in the batch, those of an abandoned window; and one of this test
}

TEST_CASE("copies of a stream read for themselves, also while the other one is being read") {
  auto first = counting(40) | data::map([](float x) { return x; }) | data::scale(1) | data::shuffle(10) | data::batch<3>;
  auto second = first;
  const auto expected = all(first);
  first.set_epoch(0);
  std::vector<float> a, b;
  auto i = first.begin();
  auto j = second.begin();
  for (; i != first.end(); ++i, ++j) {
    a.insert(a.end(), (*i).x(), (*i).x() + (*i).count);
    b.insert(b.end(), (*j).x(), (*j).x() + (*j).count);
  }
  CHECK(a == expected);
  CHECK(b == expected);
}

TEST_CASE("a stream can be prefetched and resumed") {
  const auto make = [] { return counting(30) | data::shuffle(8) | data::batch<4>; };
  auto direct = make();
  auto ahead = make() | data::prefetch(3);
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(all(ahead) == all(direct));
  direct.set_epoch(5);
  const auto whole = all(direct);
  ahead.resume_at({.epoch = 5, .samples = 12});
  CHECK(all(ahead) == std::vector(whole.begin() + 12, whole.end()));
}
