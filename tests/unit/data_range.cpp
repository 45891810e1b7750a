#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <vector>

#include "data_values.hpp"
using namespace strata;
using namespace strata::core;
using test::values;

TEST_CASE("ranges of integers") {
  using numbers = std::vector<std::int64_t>;
  CHECK(values(data::range(4)) == numbers{0, 1, 2, 3});
  CHECK(values(data::range(-1, 2)) == numbers{-1, 0, 1});
  CHECK(values(data::range(1, 10, 4)) == numbers{1, 5, 9});
  CHECK(values(data::range(1, 9, 4)) == numbers{1, 5});
  CHECK(values(data::range(10, 1, -3)) == numbers{10, 7, 4});  // tf.data: [10, 7, 4]
  CHECK(values(data::range(10, 0, -10)) == numbers{10});
  CHECK(data::range(7, 1'000'000'007).size() == 1'000'000'000);
}

TEST_CASE("the whole of int64_t, in long steps") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t step = std::int64_t{1} << 62;
  CHECK(values(data::range(least, most, step)) == std::vector{least, least + step, std::int64_t{0}, step});
  CHECK(values(data::range(most, least, least)) == std::vector{most, std::int64_t{-1}});
}

TEST_CASE("what is no range is refused") {
  CHECK_THROWS_WITH_AS(data::range(0), "range: the data set is empty", strata_error);
  CHECK_THROWS_WITH_AS(data::range(5, 5), "range: the data set is empty", strata_error);
  CHECK_THROWS_WITH_AS(data::range(1, 5, -1), "range: the data set is empty", strata_error);
  CHECK_THROWS_WITH_AS(data::range(1, 5, 0), "range: the step is 0", strata_error);
  CHECK_THROWS_WITH_AS(data::range(5'000'000'000), "range: 5000000000 samples are more than a sample_index can represent",
                       strata_error);
}

TEST_CASE("integers are samples of one number") {
  auto batches = data::range(10, 16) | data::batch<4>;
  static_assert(decltype(batches)::sample_shape == shape{1} && decltype(batches)::labels == label_kind::none);
  const samples<float> first = *batches.begin();
  CHECK(first.x()[3] == 13);
}
