#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::test;

namespace {
auto numbers(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return data::from_range(std::move(all));
}
using report = std::shared_ptr<data::damage_report>;
report make_report() { return std::make_shared<data::damage_report>(); }

/// (i, -i) with label i, unless i is among the damaged.
struct decode {
  bool (*damaged)(int);

  auto operator()(int i) const {
    if (i % 3 == 0) std::this_thread::yield();
    if (damaged(i)) throw strata_error("number " + std::to_string(i) + " is damaged");
    return std::pair(std::array{static_cast<float>(i), static_cast<float>(-i)}, i);
  }
};
std::vector<int> labels(auto& view) {
  std::vector<int> all;
  for (const auto& b : view) {
    CHECK((b.count == view.batch_size || all.size() % static_cast<std::size_t>(view.batch_size) == 0));
    for (int k = 0; k < b.count; ++k) {
      const int i = b.labels() != nullptr ? b.labels()[k] : static_cast<int>(b.x()[2 * k]);
      CHECK(b.x()[2 * k] == static_cast<float>(i));
      CHECK(b.x()[2 * k + 1] == static_cast<float>(-i));
      all.push_back(i);
    }
  }
  return all;
}
std::vector<int> good(int n, bool (*damaged)(int)) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i)
    if (!damaged(i)) all.push_back(i);
  return all;
}
constexpr bool (*kinds_of_damage[])(int) = {
    [](int) { return false; },
    [](int i) { return i % 7 == 3; },
    [](int i) { return i % 2 == 0; },
    [](int i) { return i < 45; },   // more than a batch at the beginning
    [](int i) { return i >= 60; },  // the rest
    [](int i) { return (i >= 16 && i < 80) || i == 0; },
};
}  // namespace

TEST_CASE("damaged samples are left out, and the next ones take their places") {
  for (const auto damaged : kinds_of_damage)
    for (const int threads : {1, 2, 5}) {
      const auto expected = good(150, damaged);
      const auto errors = make_report();
      auto view =
          numbers(150) | data::map(decode{damaged}, data::parallel(threads)) | data::ignore_errors(errors) | data::batch<16>;
      static_assert(!std::ranges::sized_range<decltype(view)>);
      CHECK(labels(view) == expected);
      REQUIRE(errors->samples() == 150 - expected.size());
      auto ahead = view | data::prefetch(data::autotune);
      CHECK(labels(ahead) == expected);
      CHECK(errors->samples() == 2 * (150 - expected.size()));

      std::size_t at = 0;  // in the order of the samples, twice, and no more than a hundred
      const auto messages = errors->messages();
      for (int epoch = 0; epoch < 2; ++epoch)
        for (int i = 0; i < 150 && at < messages.size(); ++i)
          if (damaged(i))
            CHECK(messages[at++] == "map: sample " + std::to_string(i) + ": number " + std::to_string(i) + " is damaged");
      CHECK(at == std::min<std::size_t>(100, errors->samples()));

      auto whole = view | data::prefetch(1);
      auto exact = numbers(150) | data::map(decode{damaged}, data::parallel(threads)) | data::ignore_errors |
                   data::batch<16, double, data::drop_remainder>;
      auto shortened = expected;
      shortened.resize(expected.size() / 16 * 16);
      CHECK(labels(exact) == shortened);
    }
}

TEST_CASE("a shuffled order has holes, but is the same order") {
  const auto damaged = kinds_of_damage[1];
  auto perfect = numbers(100) | data::map(decode{kinds_of_damage[0]}) | data::shuffle(30, {.seed = 5}) | data::batch<8>;
  auto view = numbers(100) | data::map(decode{damaged}, data::parallel(3)) | data::ignore_errors |
              data::shuffle(30, {.seed = 5}) | data::batch<8>;
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto expected = labels(perfect);
    std::erase_if(expected, damaged);
    CHECK(labels(view) == expected);
  }
}

TEST_CASE("a run with damaged samples goes on where it was left") {
  const auto make = [] {
    return numbers(150) | data::map(decode{kinds_of_damage[5]}, data::parallel(2)) | data::ignore_errors | data::shuffle(150) |
           data::batch<16>;
  };
  auto view = make();
  const auto expected = labels(view);
  view.set_epoch(0);
  auto at = view.begin();
  ++at;
  auto resumed = make();
  resumed.resume_at(view.where());
  CHECK(labels(resumed) == std::vector(expected.begin() + 32, expected.end()));
}

TEST_CASE("streams, labels without samples, dense targets") {
  const auto damaged = kinds_of_damage[2];
  const auto generate = [] { return [i = 0]() mutable { return i < 90 ? std::optional(i++) : std::nullopt; }; };
  auto stream = data::from_generator(generate) | data::map(decode{damaged}, data::parallel(3)) | data::ignore_errors |
                data::shuffle(10) | data::batch<8>;
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto found = labels(stream);
    std::sort(found.begin(), found.end());
    CHECK(found == good(90, damaged));
  }
  auto hot =
      numbers(90) | data::map(decode{damaged}, data::parallel(2)) | data::one_hot<60> | data::ignore_errors | data::batch<8>;
  int expected = 1;
  for (const auto& b : hot)
    for (int k = 0; k < b.count; ++k, expected += 2) {
      CHECK(b.x()[2 * k] == static_cast<float>(expected));
      for (int c = 0; c < 60; ++c) CHECK(b.targets()[60 * k + c] == (c == expected));
    }
  CHECK(expected == 61);
}

TEST_CASE("only errors of the stages before it are ignored, and only strata's") {
  const auto damaged = kinds_of_damage[1];
  const auto errors = make_report();
  auto mapped = numbers(50) | data::ignore_errors(errors) | data::map(decode{damaged}) | data::batch<8>;
  CHECK(error_of([&] { labels(mapped); }) == "map: sample 3: number 3 is damaged");
  CHECK(errors->samples() == 0);

  auto both = numbers(50) | data::map(decode{damaged}, data::parallel(2)) | data::ignore_errors(errors) |
              data::map([](auto x, int y) { return y == 20 ? throw strata_error("twenty") : std::pair(x, y); }) | data::batch<8>;
  CHECK(error_of([&] { labels(both); }) == "map: sample 20: twenty");
  CHECK(errors->samples() == 3);  // 3, 10, 17: those before it

  // Elements, each with a report of its own.
  const auto first = make_report(), second = make_report();
  auto twice = numbers(50) |
               data::map([](int i) { return i % 10 == 1 ? throw strata_error("ends with 1") : std::to_string(i); }) |
               data::ignore_errors(first) |
               data::map([](const std::string& text) { return decode{kinds_of_damage[1]}(std::stoi(text)); }) |
               data::ignore_errors(second) | data::batch<8>;
  CHECK(labels(twice).size() == 39);
  CHECK(first->samples() == 5);
  CHECK(second->samples() == 6);  // 31 is both

  struct other {};
  auto foreign = numbers(50) | data::map([](int i) { return i == 9 ? throw other{} : static_cast<float>(i); }) |
                 data::ignore_errors | data::batch<8>;
  const auto read = [&] {
    for (const auto& b : foreign) CHECK(b.count > 0);
  };
  CHECK_THROWS_AS(read(), other);
}

TEST_CASE("stages that look at samples before the batch does pass over damaged ones") {
  const auto damaged = kinds_of_damage[1];
  const auto errors = make_report();
  auto filtered = numbers(50) | data::map(decode{damaged}) | data::ignore_errors(errors) |
                  data::filter([](auto, int y) { return y % 2 == 1; }) | data::batch<8>;
  std::vector<int> expected = good(50, damaged);
  std::erase_if(expected, [](int i) { return i % 2 == 0; });
  CHECK(labels(filtered) == expected);
  CHECK(errors->samples() == 7);

  const scratch_folder folder("ignore_errors");
  auto kept = numbers(50) | data::map(decode{damaged}) | data::ignore_errors | data::cache(folder / "cache") | data::batch<8>;
  CHECK(kept.size() == 6);
  CHECK(labels(kept) == good(50, damaged));
  const auto generate = [] { return [i = 0]() mutable { return i < 90 ? std::optional(i++) : std::nullopt; }; };
  auto stream =
      data::from_generator(generate) | data::map(decode{damaged}) | data::ignore_errors(errors) | data::cache | data::batch<8>;
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(labels(stream) == good(90, damaged));
  CHECK(errors->samples() == 7 + 13);
}

TEST_CASE("too few samples are left") {
  auto view = numbers(20) | data::map(decode{[](int i) { return i > 4; }}) | data::ignore_errors | data::batch<8>;
  CHECK(error_of([&] { labels(view); }) == "batch<8>: a batch of 8 samples is larger than the data set, which has 5");
  auto none = numbers(20) | data::map(decode{[](int) { return true; }}) | data::ignore_errors | data::batch<8>;
  CHECK(error_of([&] { labels(none); }) == "batch<8>: the data set is empty");
}
