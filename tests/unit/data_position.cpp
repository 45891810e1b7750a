#include <doctest/doctest.h>

#include <deque>
#include <fstream>
#include <list>
#include <strata/data/core/position_file.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/tag.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <string>
#include <vector>

#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;

namespace {
std::list<float> upto(int n) {
  std::list<float> x;
  for (int k = 0; k < n; ++k) x.push_back(float(k));
  return x;
}
void append(std::vector<float>& to, const samples<float>& batch) { to.insert(to.end(), batch.x(), batch.x() + batch.count); }

/// Runs three epochs; stops after `batches` batches and resumes in a new pipeline, with the position from a file.
template <class Make>
void check_resumed(const Make& make, int batches) {
  CAPTURE(batches);
  const test::scratch_folder folder("position");
  std::vector<float> uninterrupted, resumed;
  auto whole = make();
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& batch : whole) append(uninterrupted, batch);

  int epoch = 0;
  {
    auto first = make();
    for (int left = batches; left > 0; ++epoch)
      for (const auto& batch : first) {
        append(resumed, batch);
        if (--left == 0) break;
      }
    data::save_position(first, folder / "position");
  }
  auto second = make();
  data::restore_position(second, folder / "position");
  for (epoch = second.where().epoch; epoch < 3; ++epoch)
    for (const auto& batch : second) append(resumed, batch);
  CHECK(resumed == uninterrupted);
}
}  // namespace

TEST_CASE("a pipeline goes on in another process where it was, whatever it consists of") {
  const auto plain = [] { return data::from_tensor_slices(upto(53)) | data::shuffle(20, {.seed = 3}) | data::batch<8>; };
  const auto chain = [] {
    return data::from_tensor_slices(upto(53)) | data::skip(2) | data::shuffle(20) | data::take(40) |
           data::filter([](auto x) { return int(x(0)) % 5 != 0; }) | data::repeat(2) | data::shuffle(7) | data::batch<8>;
  };
  const auto stream = [] {
    return data::from_range(upto(53)) | data::filter([](float x) { return x != 7; }) | data::shuffle(20) | data::batch<8> |
           data::prefetch();
  };
  for (int batches = 0; batches <= 14; ++batches) {
    check_resumed(plain, batches);
    check_resumed(chain, batches);
    check_resumed(stream, batches);
  }
}

TEST_CASE("a position does not depend on the size of batches, nor on how many are ready") {
  auto eights = data::from_tensor_slices(upto(50)) | data::shuffle(20) | data::batch<8> | data::prefetch(4);
  CHECK(eights.where() == data_position{0, 0});
  auto at = eights.begin();
  CHECK(eights.where() == data_position{0, 8});
  ++at;
  CHECK(eights.where() == data_position{0, 16});
  auto fours = data::from_tensor_slices(upto(50)) | data::shuffle(20) | data::batch<4>;
  fours.resume_at(eights.where());
  CHECK(fours.where() == data_position{0, 16});
  ++at;
  auto four = fours.begin();
  CHECK(std::vector((*four).x(), (*four).x() + 4) == std::vector((*at).x(), (*at).x() + 4));
  while (at != eights.end()) ++at;
  CHECK(eights.where() == data_position{0, 50});
  eights.set_epoch(9);
  CHECK(eights.where() == data_position{9, 0});
}

TEST_CASE("a description tells data sets apart that differ in a number only") {
  const auto order = [](const auto& view) { return data::detail::order_of(view); };
  const auto first = [](int n) {
    const auto list = upto(n);
    return std::vector<float>(list.begin(), list.end());
  };
  const auto numbers = data::from_tensor_slices(first(50));
  CHECK(order(numbers) == order(data::from_tensor_slices(first(50))));
  CHECK(order(numbers).starts_with("from_tensor_slices(50 samples, checksum "));
  for (const std::size_t at : {0u, 17u, 49u}) {  // a small data set is compared completely
    auto changed = first(50);
    changed[at] += 0.5f;
    CHECK(order(data::from_tensor_slices(changed)) != order(numbers));
    CHECK(order(data::from_range(changed)) != order(data::from_range(first(50))));
    CHECK(order(numbers | data::sample_weight(changed)) != order(numbers | data::sample_weight(first(50))));
    std::vector<int> labels(50);
    const auto labelled = order(data::from_tensor_slices(first(50), labels));
    labels[at] = 1;
    CHECK(order(data::from_tensor_slices(first(50), labels)) != labelled);
  }
  const std::vector<std::string> files{"a", "b"}, others{"a", "c"};
  CHECK(order(data::from_range(files)) != order(data::from_range(others)));
  CHECK(order(numbers | data::scale(0.1)) != order(numbers | data::scale(0.1 + 1e-16)));
  CHECK(order(numbers | data::enumerate(1)) != order(numbers | data::enumerate(2)));
  CHECK(order(numbers | data::map([](auto x) { return x(0); })) != order(numbers));
  const auto batches = numbers | data::batch<8>;
  CHECK(order(batches) == order(numbers | data::batch<4>));
  CHECK(order(batches | data::take(2)) != order(batches | data::take(3)));
  CHECK(order(batches | data::take(2)) != order(numbers | data::batch<4> | data::take(2)));
  CHECK(order(batches | data::repeat(2)) != order(batches | data::repeat(3)));
  const auto full = numbers | data::batch<8, data::drop_remainder>;
  CHECK(order(full | data::repeat(2)) != order(batches | data::repeat(2)));
  CHECK(order(batches | data::unbatch) == order(numbers) + " | batch(8) | unbatch");
  CHECK(order(full | data::map([](auto&) {}) | data::unbatch) == order(numbers) + " | map | batch(8, drop_remainder) | unbatch");
  CHECK(order(data::range(5)) == "range(5 samples, from 0 in steps of 1)");
  CHECK(order(data::range(8, 0, -2)) == "range(4 samples, from 8 in steps of -2)");
  for (const float last : {1.f, 2.f}) {
    std::deque<float> plain{0, 1}, changed{0, last};
    CHECK((order(data::from_range(plain)) == order(data::from_range(changed))) == (last == 1));
  }
  CHECK(order(data::from_range(std::deque<std::string>{"a"})) != order(data::from_range(std::deque<std::string>{"b"})));
  CHECK(order(batches | data::map([](auto&) {})) != order(batches));
  CHECK(order(numbers | data::map([](auto x) { return x(0); }) | data::tag("v1")) == order(numbers) + " | map | tag(v1)");
  auto tagged = batches | data::tag("v1") | data::prefetch() | data::tag("v2");
  static_assert(batch_source<decltype(tagged)>);
  CHECK(order(tagged) == order(numbers) + " | tag(v1) | tag(v2)");
  CHECK((*tagged.begin()).x()[3] == 3);
  CHECK_THROWS_WITH_AS(batches | data::tag("two\nlines"), "tag: the text must be one line and not empty", strata_error);
}

TEST_CASE("a position in another data set, a damaged one and none are refused") {
  const test::scratch_folder folder("position");
  const auto path = folder / "position";
  auto view = data::from_tensor_slices(upto(50)) | data::shuffle(20) | data::batch<8>;
  data::save_position(view, path);
  auto other = data::from_tensor_slices(upto(49)) | data::shuffle(20) | data::batch<8>;
  CHECK_THROWS_WITH_AS(data::restore_position(other, path),
                       (path.string() + ": the position belongs to '" + data::detail::order_of(view) +
                        "', but the data set is '" + data::detail::order_of(other) + "'")
                           .c_str(),
                       strata_error);
  for (const char* bad : {"", "strata data position 2\n", "strata data position 1\nepoch x\n",
                          "strata data position 1\nepoch 99999999999\n", "strata data position 1\nepoch -1\n",
                          "strata data position 1\nepoch 1\nsamples 1 2\n", "strata data position 1\nepoch 1\nsamples 8\n"}) {
    std::ofstream(path, std::ios::binary) << bad;
    CAPTURE(bad);
    CHECK_THROWS_AS(data::restore_position(view, path), strata_error);
  }
  std::ofstream(path, std::ios::binary) << "strata data position 1\nepoch 1\nsamples many\n";
  CHECK_THROWS_WITH_AS(data::restore_position(view, path), (path.string() + ": 'many' is not a valid value of samples").c_str(),
                       strata_error);
  std::ofstream(path, std::ios::binary) << "strata data position 1\nepoch 1\nsamples 99999\norder "
                                        << data::detail::order_of(view) << '\n';
  CHECK_THROWS_WITH_AS(
      data::restore_position(view, path),
      (path.string() + ": the position is after 99999 samples of an epoch, but the data set has 7 batches of 8").c_str(),
      strata_error);
  CHECK_THROWS_WITH_AS(data::restore_position(view, folder / "none"),
                       ("cannot read " + (folder / "none").string() + ": No such file or directory").c_str(), strata_error);
}
