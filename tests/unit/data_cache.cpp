#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <optional>
#include <span>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/tag.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using test::bytes, test::error_of, test::operator+;

namespace {
constexpr int n = 40;
std::vector<float> upto() {
  std::vector<float> x;
  for (int k = 0; k < n; ++k) x.push_back(float(k));
  return x;
}
auto stream() {
  const auto x = upto();
  return data::from_range(std::list<float>(x.begin(), x.end()));
}
/// A function that counts its calls and maps x to ((x, 2x), (x, -x)).
auto counting(std::atomic<int>& calls) {
  return [&calls](auto x) {
    ++calls;
    float value = 0;
    if constexpr (requires { x(0); })
      value = x(0);
    else
      value = x;
    return std::pair(std::array{value, 2 * value}, std::array{value, -value});
  };
}
struct pairs {
  std::vector<float> x, y;
  bool operator==(const pairs&) const = default;
};
pairs all(auto&& source) {
  pairs p;
  for (const auto& batch : source) {
    p.x.insert(p.x.end(), batch.x(), batch.x() + 2 * batch.count);
    p.y.insert(p.y.end(), batch.targets(), batch.targets() + 2 * batch.count);
  }
  return p;
}
}  // namespace

TEST_CASE("in memory: each sample is made once, whatever the order") {
  std::atomic<int> calls = 0;
  auto direct = data::from_tensor_slices(upto()) | data::map(counting(calls)) | data::shuffle(n) | data::batch<7>;
  auto view = data::from_tensor_slices(upto()) | data::map(counting(calls)) | data::cache | data::shuffle(n) | data::batch<7>;
  static_assert(std::ranges::random_access_range<decltype(data::from_tensor_slices(upto()) | data::scale(2) | data::cache)>);
  for (int epoch = 0; epoch < 3; ++epoch) {
    CHECK(all(view) == all(direct));
    CHECK(calls == n * (epoch + 2));
  }
  auto doubles = data::from_tensor_slices(upto()) | data::scale(1. / 3) | data::cache | data::batch<40, double>;
  CHECK((*doubles.begin()).x()[1] == double(1.f / 3));
}

TEST_CASE("in memory: a sample that cannot be made is tried again") {
  std::atomic<int> calls = 0;
  auto view = data::from_tensor_slices(upto()) | data::map([&calls](auto x) {
                if (++calls == 5) throw std::runtime_error("once");
                return std::pair(std::array{x(0), x(0)}, std::array{x(0), x(0)});
              }) |
              data::cache | data::batch<1>;
  CHECK_THROWS_WITH_AS(all(view), "map: sample 4: once", strata_error);
  CHECK(all(view).x.size() == 2 * n);
  CHECK(calls == n + 1);
}

TEST_CASE("in memory: a stream is kept once it has been read to its end") {
  std::atomic<int> calls = 0;
  auto direct = stream() | data::map(counting(calls)) | data::shuffle(9) | data::batch<7>;
  auto view = stream() | data::map(counting(calls)) | data::cache | data::shuffle(9) | data::batch<7>;
  auto i = view.begin();
  ++i;
  const int early = calls;
  CHECK(early < n);
  view.set_epoch(0);
  for (int epoch = 0; epoch < 3; ++epoch) {
    CHECK(all(view) == all(direct));
    CHECK(calls == early + n * (epoch + 2));
  }
  auto copy = view;
  copy.set_epoch(0);
  direct.set_epoch(0);
  CHECK(all(copy) == all(direct));
  CHECK(calls == early + n * 5);
}

TEST_CASE("in memory: several threads ask for the same samples") {
  std::atomic<int> calls = 0;
  const auto view = data::from_tensor_slices(upto()) | data::map(counting(calls)) | data::cache;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t k = 0; k < 10 * n; ++k) {
        const std::uint32_t row = k * (t % 2 == 0 ? 1u : 7u) % n;
        float x[2], y[2];
        view.rows().write({row}, {row}, data::sample_place<float>{x, nullptr, y}, std::identity{});
        if (x[1] != 2 * float(row) || y[1] != -float(row)) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("in a file: made once, mapped by later runs, complete or absent") {
  const test::scratch_folder folder("cache");
  const auto path = folder / "train.cache";
  std::atomic<int> calls = 0;
  const auto make = [&](auto source) {
    return source | data::map(counting(calls)) | data::cache(path) | data::shuffle(9) | data::batch<7>;
  };
  const auto expected = all(stream() | data::map(counting(calls)) | data::shuffle(9) | data::batch<7>);
  CHECK(all(make(stream())) == expected);
  CHECK(calls == 2 * n);
  CHECK(all(make(stream())) == expected);
  CHECK(calls == 2 * n + 8);  // the first few are made anew, and compared

  std::filesystem::remove(path);
  const auto fail = [](float x) -> float { return x < 20 ? x : throw std::runtime_error("disk on fire"); };
  CHECK_THROWS_WITH_AS(stream() | data::map(fail) | data::cache(path), "map: sample 20: disk on fire", strata_error);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("in a file: labels, bytes and their order") {
  const test::scratch_folder folder("cache");
  const auto path = folder / "bytes.cache";
  std::vector<std::array<std::uint8_t, 3>> x;
  std::vector<int> y;
  for (int k = 0; k < 100; ++k) {
    x.push_back({std::uint8_t(k), std::uint8_t(k + 1), std::uint8_t(2 * k)});
    y.push_back(k - 50);
  }
  auto source = data::from_tensor_slices(x, y);
  for (int run = 0; run < 2; ++run) {
    auto view = source | data::cache(path);
    static_assert(std::same_as<data::rows_t<decltype(view)>::value_type, std::uint8_t>);
    CHECK(view.size() == 100);
    auto batches = view | data::scale(2) | data::batch<100>;
    const auto batch = *batches.begin();
    for (int k = 0; k < 100; ++k) {
      REQUIRE(batch.x()[3 * k + 2] == 4 * float(k));
      REQUIRE(batch.labels()[k] == k - 50);
    }
  }
}

TEST_CASE("labels and targets begin at their alignment, after images of any number of bytes") {
  const test::scratch_folder folder("cache");
  std::vector<std::uint8_t> pixels(25 * n);
  std::vector<int> classes;
  std::vector<double> targets;
  for (std::size_t k = 0; k < pixels.size(); ++k) pixels[k] = std::uint8_t(k * k);
  for (int k = 0; k < n; ++k) classes.push_back(k % 3), targets.push_back(k / 3.0);
  const data::array<std::uint8_t, shape{5, 5, 1}> images(pixels);
  const auto check = [&](auto view, auto is_right) {
    for (int epoch = 0; epoch < 2; ++epoch) {
      auto batches = view | data::batch<n, double>;
      const auto batch = *batches.begin();
      CHECK(std::equal(pixels.begin(), pixels.end(), batch.x()));
      CHECK(is_right(batch));
    }
    const auto set = view.rows().stored();
    REQUIRE(set.has_value());
    const std::size_t number = set->truths == label_kind::sparse ? sizeof(std::int32_t) : sizeof(double);
    for (const std::size_t row : {0u, 1u, n - 1u})
      CHECK(reinterpret_cast<std::uintptr_t>(set->row(set->truth, row)) % number == 0);
  };
  const auto labelled = data::from_tensor_slices(images, classes);
  const auto right_classes = [&](const auto& batch) { return std::equal(classes.begin(), classes.end(), batch.labels()); };
  check(labelled | data::cache, right_classes);
  check(labelled | data::cache(folder / "classes.cache"), right_classes);
  const auto with_numbers = data::from_tensor_slices(images, targets);
  const auto right_targets = [&](const auto& batch) { return std::equal(targets.begin(), targets.end(), batch.targets()); };
  check(with_numbers | data::cache, right_targets);
  check(with_numbers | data::cache(folder / "numbers.cache"), right_targets);
}

TEST_CASE("in a file: of another data set, or damaged") {
  const test::scratch_folder folder("cache");
  const auto path = folder / "a.cache";
  const auto numbers = data::from_tensor_slices(upto());
  (void)(numbers | data::cache(path));
  const std::string description = "strata cache 4: float32 (1,) of " + data::detail::order_of(numbers);
  CHECK_THROWS_WITH_AS(numbers | data::take(5) | data::cache(path),
                       ("cache: " + path.string() + " holds '" + description + "', but the data set is '" + description +
                        " | take(5)': remove the file, or give each data set its own")
                           .c_str(),
                       strata_error);
  CHECK_THROWS_AS(data::from_tensor_slices(std::vector<double>(40)) | data::cache(path), strata_error);
  const auto whole = folder.read("a.cache");
  const auto complaint = [&](data::cache_options options = {}) {
    return folder.without_folder(error_of([&] { (void)(numbers | data::cache(path, options)); }));
  };
  const std::string again = "; remove the file, and it is written again";
  for (const std::size_t missing : {1u, 8u, 16u, 100u, 320u}) {  // 8 bytes are a sample
    folder.write("a.cache", std::span(whole).first(whole.size() - missing));
    for (const bool check : {false, true})
      CHECK(complaint({.check_crc = check}) == "cache: a.cache is damaged: its header has 40 samples of 8 bytes, but " +
                                                   std::to_string(320 - missing) + " bytes follow" + again);
  }
  folder.write("a.cache", whole + bytes(8));
  CHECK(complaint() == "cache: a.cache is damaged: its header has 40 samples of 8 bytes, but 328 bytes follow" + again);
  folder.write("a.cache", std::span(whole).first(whole.size() - 321));
  CHECK(complaint() == "cache: a.cache is damaged: it ends within its header" + again);
  for (const std::size_t size : {0u, 10u}) {
    folder.write("a.cache", std::span(whole).first(size));
    CHECK(complaint().starts_with("cache: a.cache holds '"));
  }
  const std::size_t line = (description.size() + 1 + 63) / 64 * 64;  // the line that describes the data set, padded
  for (std::size_t at = line; at < whole.size(); at += at < line + 16 ? 1 : 13) {
    if (at >= line + 16 && at < line + 64) continue;  // unused
    auto changed = whole;
    changed[at] ^= 4;
    folder.write("a.cache", changed);
    CAPTURE(at);
    CHECK(complaint() == std::string("cache: a.cache is damaged: the checksum of its ") +
                             (at < line + 64 ? "header" : "samples") + " is wrong" + again);
    if (at >= line + 64) CHECK(complaint({.check_crc = false, .check_samples = false}) == "no error");
  }
  auto older = whole;
  older[std::string("strata cache ").size()] = '2';
  folder.write("a.cache", older);
  CHECK(complaint() == "cache: a.cache has another format, 'strata cache 2': remove the file, and it is written again");
  folder.write("a.cache", whole);
  CHECK(complaint() == "no error");
  CHECK_THROWS_AS(numbers | data::cache(folder / "no" / "folder"), strata_error);
}

TEST_CASE("in a file: samples that have changed since are refused, and the file stays as it is") {
  const test::scratch_folder folder("cache");
  const auto path = folder / "a.cache";
  const auto numbers = data::from_tensor_slices(upto());
  std::atomic<int> calls = 0;
  const auto sum = [&](auto view, data::cache_options options = {}) {
    float total = 0;
    for (const auto& b : view | data::cache(path, options) | data::batch<n>)
      for (int k = 0; k < b.count; ++k) total += b.x()[k];
    return total;
  };
  const auto plus = [&calls](float add) {
    return data::map([&calls, add](auto x) {
      ++calls;
      return std::pair(x(0) + (x(0) >= 20 && x(0) < 39 ? add : 0), 3);
    });
  };
  const float right = sum(numbers | data::scale(2) | plus(0));
  CHECK(calls == n);
  CHECK(sum(numbers | data::scale(2) | plus(0)) == right);
  CHECK(calls < n + 10);
  const auto complaint = [&](auto view) { return folder.without_folder(error_of([&] { sum(view); })); };
  CHECK(complaint(numbers | data::scale(2) | plus(1)) ==
        "cache: a.cache holds other samples than the data set has now: sample 11 differs, because of "
        "other data or a function that returns other numbers: remove the file, and it is written again, give each data set its "
        "own, or "
        "set .check_samples = false");
  CHECK(sum(numbers | data::scale(2) | plus(1e-3f)) == right);  // within the differences between processors
  CHECK(complaint(numbers | data::scale(2) | plus(4e-3f)).starts_with("cache: a.cache holds other samples"));
  CHECK(sum(numbers | data::scale(2) | plus(1), {.check_samples = false}) == right);
  CHECK(complaint(numbers | data::scale(3) | plus(0))
            .ends_with(" | scale(3) | map': remove the file, or give each data set its own"));
  auto others = upto();
  others[5] = 50;
  CHECK(complaint(data::from_tensor_slices(others) | data::scale(2) | plus(0))
            .starts_with("cache: a.cache holds 'strata cache 4: "));
  CHECK(complaint(numbers | data::scale(2) | plus(0) | data::tag("2")).starts_with("cache: a.cache holds 'strata cache 4: "));
  CHECK(sum(numbers | data::scale(2) | plus(0)) == right);

  // A stream: only the first elements are read again.
  std::filesystem::remove(path);
  const auto generated = [&](float first, int count = n) {
    return data::from_generator([first, count, &calls] {
      return [first, count, &calls, k = 0]() mutable -> std::optional<float> {
        if (k == count) return {};
        ++calls;
        return float(k++) + first;
      };
    });
  };
  sum(generated(1) | data::shuffle(3));
  calls = 0;
  sum(generated(1) | data::shuffle(3));
  CHECK(calls < 14);
  CHECK(complaint(generated(2) | data::shuffle(3)).find("other samples than the data set has now: sample 0") !=
        std::string::npos);
  CHECK(error_of([&] { sum(generated(1) | data::filter([](float x) { return x > 3; }) | data::shuffle(3)); }) != "no error");
  std::filesystem::remove(path);
  sum(generated(1));
  for (const int count : {0, 3})  // fewer than are compared
    CHECK(complaint(generated(1, count)).find("ends after " + std::to_string(count) + " samples, but the file has 40") !=
          std::string::npos);

  // The order is that of epoch 0, whatever has been read before.
  std::filesystem::remove(path);
  auto shuffled = numbers | data::shuffle(n);
  for (int epoch = 0; epoch < 2; ++epoch)
    for ([[maybe_unused]] const data::sample_index i : shuffled) {
    }
  sum(shuffled);
  CHECK(error_of([&] { sum(numbers | data::shuffle(n)); }) == "no error");
}
