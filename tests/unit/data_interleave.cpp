// The expected orders are those of TensorFlow 2.21: Dataset.range(n).interleave(lambda i: Dataset.range(100 * i, 100 * i + L[i]),
// cycle_length, block_length), which was also compared with itself under num_parallel_calls, and with `in_turns` below.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data_values.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;
using test::values;

namespace {
using numbers = std::vector<std::int64_t>;

/// Maps i to the range 100 i ... 100 i + lengths[i] - 1.
auto hundreds(std::vector<int> lengths) {
  return [lengths](std::int64_t i) {
    numbers range;
    for (int k = 0; k < lengths[static_cast<std::size_t>(i)]; ++k) range.push_back(100 * i + k);
    return range;
  };
}
auto count_of(const std::vector<int>& lengths) { return data::range(static_cast<std::int64_t>(lengths.size())); }

/// The expected order, computed by a plain loop over the cycle.
numbers in_turns(const std::vector<int>& lengths, std::size_t cycle_length, int block_length) {
  struct place {
    std::int64_t range = -1, next = 0;
  };
  std::vector<place> places(cycle_length);
  numbers order;
  std::int64_t coming = 0, open = 0;
  const auto ranges = static_cast<std::int64_t>(lengths.size());
  for (std::size_t at = 0; coming < ranges || open > 0; at = (at + 1) % cycle_length) {
    place& here = places[at];
    if (here.range < 0) {
      if (coming == ranges) continue;
      here = {coming++, 0};
      ++open;
    }
    const std::int64_t length = lengths[static_cast<std::size_t>(here.range)];
    int taken = 0;
    for (; taken < block_length && here.next < length; ++taken) order.push_back(100 * here.range + here.next++);
    if (taken < block_length) here.range = -1, --open;
  }
  return order;
}
}  // namespace

TEST_CASE("flat_map: one range after the other") {
  const std::vector<int> lengths{3, 1, 4, 2, 0, 2};
  CHECK(values(count_of(lengths) | data::flat_map(hundreds(lengths))) ==
        numbers{0, 1, 2, 100, 200, 201, 202, 203, 300, 301, 500, 501});
  CHECK(values(data::range(3) | data::flat_map([](auto) { return numbers{}; })).empty());
}

TEST_CASE("interleave: the order of TensorFlow") {
  const auto order = [](std::vector<int> lengths, int cycle_length, int block_length) {
    const data::interleave_options options{.cycle_length = cycle_length, .block_length = block_length};
    const auto alone = values(count_of(lengths) | data::interleave(hundreds(lengths), options));
    for (int threads = 1; threads < 4; ++threads)
      CHECK(values(count_of(lengths) | data::interleave(hundreds(lengths), options, data::parallel(threads))) == alone);
    CHECK(in_turns(lengths, static_cast<std::size_t>(cycle_length), block_length) == alone);
    return alone;
  };
  CHECK(order({3, 1, 4, 2, 0, 2}, 2, 1) == numbers{0, 100, 1, 2, 200, 201, 300, 202, 301, 203, 500, 501});
  CHECK(order({3, 1, 4, 2, 0, 2}, 3, 2) == numbers{0, 1, 100, 200, 201, 2, 300, 301, 202, 203, 500, 501});
  CHECK(order({2, 5, 1}, 2, 2) == numbers{0, 1, 100, 101, 102, 103, 200, 104});
  CHECK(order({0, 0, 3, 1}, 4, 1) == numbers{200, 300, 201, 202});
}

TEST_CASE("interleave: random ranges, cycles, blocks and threads, against a plain loop") {
  std::mt19937 random(7);
  const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
  for (int trial = 0; trial < 150; ++trial) {
    std::vector<int> lengths(static_cast<std::size_t>(1 + below(9)));
    for (int& n : lengths) n = below(4) == 0 ? below(60) : below(4);
    const data::interleave_options options{.cycle_length = 1 + below(5), .block_length = 1 + below(3)};
    const numbers expected = in_turns(lengths, static_cast<std::size_t>(options.cycle_length), options.block_length);
    test::epochs_of alone(count_of(lengths) | data::interleave(hundreds(lengths), options) | data::elements);
    test::epochs_of threads(count_of(lengths) | data::interleave(hundreds(lengths), options, data::parallel(1 + below(4))) |
                            data::elements);
    for (int epoch = 0; epoch < 2; ++epoch) {
      REQUIRE(alone.next() == expected);
      REQUIRE(threads.next() == expected);
    }
  }
}

TEST_CASE("without an order to keep, all elements come all the same, those of one range in theirs") {
  const std::vector<int> lengths{30, 2, 0, 50, 17};
  const data::interleave_options options{.cycle_length = 3, .deterministic = false};
  test::epochs_of epochs(count_of(lengths) | data::interleave(hundreds(lengths), options, data::parallel(3)) | data::elements);
  for (int epoch = 0; epoch < 5; ++epoch) {
    numbers seen = epochs.next(), all;
    std::stable_sort(seen.begin(), seen.end(), [](auto a, auto b) { return a / 100 < b / 100; });
    for (std::size_t i = 0; i < lengths.size(); ++i)
      for (int k = 0; k < lengths[i]; ++k) all.push_back(100 * std::int64_t(i) + k);
    CHECK(seen == all);
  }
}

TEST_CASE("a slow range holds the others up only if the order is to be kept") {
  std::atomic<bool> go_on{false};
  const auto ranges = [&go_on](std::int64_t i) {
    return [&go_on, i, k = 0]() mutable -> std::optional<std::int64_t> {
      if (i == 0)
        while (!go_on) std::this_thread::yield();
      return k < 3 ? std::optional(10 * i + k++) : std::nullopt;
    };
  };
  auto view =
      data::range(2) | data::interleave(ranges, {.cycle_length = 2, .deterministic = false}, data::parallel(2)) | data::elements;
  numbers seen;
  for (const std::int64_t x : view) {
    seen.push_back(x);
    if (seen.size() == 3) go_on = true;  // range 0 would never have begun otherwise
  }
  CHECK(seen == numbers{10, 11, 12, 0, 1, 2});
}

TEST_CASE("f may return ranges, views of samples, and functions") {
  const auto stream = data::range(3) | data::flat_map([](std::int64_t n) {
                        return [n]() mutable { return n > 0 ? std::optional(float(n--)) : std::nullopt; };
                      });
  CHECK(values(stream) == std::vector<float>{1, 2, 1});

  const auto slices = data::from_tensor_slices(data::array<float, shape{2}>({1, 2, 3, 4, 5, 6}), std::vector{7, 8, 9});
  const auto repeated = [slices](std::int64_t n) { return slices | data::take(static_cast<std::size_t>(n)); };
  const auto check = [](auto view) {
    std::vector<std::pair<float, int>> rows;
    auto batches = view | data::batch<4>;
    static_assert(decltype(batches)::sample_shape == shape{2} && decltype(batches)::labels == label_kind::sparse);
    for (const samples<float>& b : batches)
      for (int k = 0; k < b.count; ++k) rows.emplace_back(b.x()[2 * k + 1], b.labels()[k]);
    return rows;
  };
  using rows = std::vector<std::pair<float, int>>;
  CHECK(check(data::range(1, 4) | data::flat_map(repeated)) == rows{{2, 7}, {2, 7}, {4, 8}, {2, 7}, {4, 8}, {6, 9}});
  CHECK(check(data::range(1, 4) | data::interleave(repeated, data::parallel(2))) ==
        rows{{2, 7}, {2, 7}, {2, 7}, {4, 8}, {4, 8}, {6, 9}});

  const auto x_and_label = [](auto x, int label) { return std::vector<int>(2, int(x(0)) * 10 + label); };
  const std::vector<int> twice{17, 17, 38, 38, 59, 59};
  CHECK(values(slices | data::flat_map(x_and_label)) == twice);
  CHECK(values(slices | data::interleave(x_and_label, {.cycle_length = 1}, data::parallel(2))) == twice);

  const std::vector<std::string> names{"ab", "", "c"};
  const auto letters = [](const std::string& s) { return std::vector<char>(s.begin(), s.end()); };
  CHECK(values(data::from_range(names) | data::flat_map(letters)) == std::vector{'a', 'b', 'c'});
  CHECK(values(data::from_range(names) | data::interleave(letters, data::parallel(2))) == std::vector{'a', 'c', 'b'});
}

TEST_CASE("shuffles inside ranges go on with the epoch") {
  const auto shuffled = [](std::int64_t i) { return data::range(20 * i, 20 * i + 20) | data::shuffle(20); };
  test::epochs_of alone(data::range(2) | data::interleave(shuffled) | data::elements);
  test::epochs_of threads(data::range(2) | data::interleave(shuffled, data::parallel(2)) | data::elements);
  const numbers first = alone.next(), second = alone.next();
  CHECK(first != second);
  CHECK(threads.next() == first);
  CHECK(threads.next() == second);
}

TEST_CASE("errors of f, of its range and of the view before it arrive in their turn, with the element") {
  const auto bad_range = [](std::int64_t i) {
    return [i, k = 0]() mutable -> std::optional<std::int64_t> {
      if (i == 2 && k == 1) throw std::runtime_error("damaged");
      return k < 2 ? std::optional(10 * i + k++) : std::nullopt;
    };
  };
  const auto bad_function = [](std::int64_t i) {
    if (i == 2) throw std::runtime_error("no such file");
    return numbers{10 * i, 10 * i + 1};
  };
  const auto same = [](std::int64_t i) { return numbers{10 * i, 10 * i + 1}; };
  const auto bad_map = data::map([](std::int64_t i) {
    if (i == 2) throw std::runtime_error("no two");
    return i;
  });
  const auto read = [](auto view, numbers& seen) {
    return error_of([&] {
      for (const auto x : view) seen.push_back(x);
    });
  };
  const data::interleave_options two{.cycle_length = 2};
  for (const bool threads : {false, true}) {
    const auto check = [&](auto before, auto f, const std::string& text, const numbers& good) {
      numbers seen;
      const std::string what = threads ? read(before | data::interleave(f, two, data::parallel(2)) | data::elements, seen)
                                       : read(before | data::interleave(f, two) | data::elements, seen);
      CHECK(what == text);
      CHECK(seen == good);
    };
    check(data::range(4), bad_range, "interleave: sample 2: damaged", {0, 10, 1, 11, 20, 30});
    check(data::range(4), bad_function, "interleave: sample 2: no such file", {0, 10, 1, 11});
    check(data::range(4) | bad_map, same, "map: sample 2: no two", {0, 10, 1, 11});
    check(data::range(4) | data::shuffle(4) | data::filter([](auto i) { return i == 2; }), bad_function,
          "interleave: sample 2: no such file", {});
  }
  CHECK(error_of([&] { values(data::range(4) | data::flat_map(bad_range)); }) == "flat_map: sample 2: damaged");
}

TEST_CASE("what ignore_errors leaves out has no range, and leaves none of one") {
  const auto odd_only = data::map([](std::int64_t i) {
    if (i % 2 == 0) throw strata_error("even");
    return i;
  });
  const auto inner = [odd_only](std::int64_t i) { return data::range(10 * i, 10 * i + 4) | odd_only | data::ignore_errors; };
  auto odd = data::range(5) | odd_only | data::ignore_errors;
  const numbers expected{11, 31, 13, 33};
  CHECK(values(odd | data::interleave(inner, {.cycle_length = 2})) == expected);
  CHECK(values(odd | data::interleave(inner, {.cycle_length = 2}, data::parallel(2))) == expected);
}

TEST_CASE("after an error the next epoch is whole") {
  auto fails = std::make_shared<std::atomic<int>>(2);
  const auto f = [fails](std::int64_t i) {
    return [fails, i, k = 0]() mutable -> std::optional<std::int64_t> {
      if (i == 1 && (*fails)-- > 0) throw std::runtime_error("not yet");
      return k < 40 ? std::optional(100 * i + k++) : std::nullopt;
    };
  };
  auto view = data::range(3) | data::interleave(f, {.cycle_length = 2}, data::parallel(2)) | data::batch<8> | data::prefetch();
  const auto read = [&view] {
    int n = 0;
    for (const auto& b : view) n += b.count;
    return n;
  };
  CHECK_THROWS_WITH_AS(read(), "interleave: sample 1: not yet", strata_error);
  CHECK_THROWS_WITH_AS(read(), "interleave: sample 1: not yet", strata_error);
  CHECK(read() == 120);
}

TEST_CASE("left, begun again, copied, moved and destroyed at any moment") {
  std::mt19937 random(3);
  const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
  const std::vector<int> lengths{40, 3, 0, 25, 60, 1};
  for (int trial = 0; trial < 300; ++trial) {
    const data::interleave_options options{
        .cycle_length = 1 + below(4), .block_length = 1 + below(3), .deterministic = below(4) > 0};
    auto view = count_of(lengths) | data::interleave(hundreds(lengths), options, data::parallel(1 + below(3)));
    const auto read = [&](auto v, int most) {
      if (most == 0) return;
      auto all = std::move(v) | data::elements;
      numbers seen;
      for (const std::int64_t x : all) {
        seen.push_back(x);
        if (static_cast<int>(seen.size()) == most) break;
      }
      if (!options.deterministic) return;
      numbers expected = in_turns(lengths, static_cast<std::size_t>(options.cycle_length), options.block_length);
      expected.resize(std::min(expected.size(), seen.size()));
      REQUIRE(seen == expected);
    };
    read(view, below(140));
    auto begun = view | data::elements;
    auto at = begun.begin();
    for (int k = below(100); k > 0; --k) ++at;
    read(begun.base(), below(140));  // a copy, while the threads of the other one are at work
    if (below(2) == 0) begun.begin();
    read(std::move(view), below(140));
  }
}

TEST_CASE("options that make no sense are refused") {
  const auto f = hundreds({1});
  CHECK_THROWS_WITH_AS(data::range(1) | data::interleave(f, {.cycle_length = 0}),
                       "interleave: cycle_length is 0, it must be at least 1", strata_error);
  CHECK_THROWS_WITH_AS(data::range(1) | data::interleave(f, {.block_length = -1}, data::parallel(2)),
                       "interleave: block_length is -1, it must be at least 1", strata_error);
}
