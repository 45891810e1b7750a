#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <span>
#include <strata/data/sets/synthetic_digits.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/io/sha256.hpp>
#include <vector>
using namespace strata;

namespace {
std::vector<std::uint8_t> bytes(const data::digits& d) {
  const auto values = d.rows().base().x().values();
  return {values.begin(), values.end()};
}
}  // namespace

TEST_CASE("digits are deterministic, to the bit on every machine") {
  const data::digits d = data::synthetic_digits(200, 7);
  CHECK(bytes(d) == bytes(data::synthetic_digits(200, 7)));
  CHECK(bytes(d) != bytes(data::synthetic_digits(200, 8)));
  io::sha256 sum;
  sum.update(d.rows().base().x().values());
  CHECK(sum.hex() == "f7eaeb784fef1f06db1669252830ff2f56ba5db958d12465c369a82a8bb8d3e0");
}

TEST_CASE("labels are balanced and in random order") {
  const data::digits d = data::synthetic_digits(1000, 1);
  std::array<int, 10> count{};
  int runs = 1;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ++count[std::size_t(d.rows().label({i}))];
    if (i > 0) runs += d.rows().label({i}) != d.rows().label({i - 1});
  }
  for (const int c : count) CHECK(c == 100);
  CHECK(runs > 850);  // about 901
  CHECK(runs < 950);
}

TEST_CASE("every image shows something, and leaves paper around it") {
  const data::digits d = data::synthetic_digits(500, 2);
  for (std::size_t i = 0; i < 500; ++i) {
    const std::span<const std::uint8_t> image(d.rows().base().x().row(i), 784);
    const auto ink = std::ranges::count_if(image, [](int v) { return v > 100; });
    CAPTURE(i);
    CHECK(ink > 15);
    CHECK(ink < 400);
    CHECK(std::ranges::count(image, 0) > 300);
  }
}

TEST_CASE("a linear classifier learns the digits, but not all of them") {
  auto train = data::synthetic_digits(6000, 3) | data::shuffle(6000) | data::batch<50>;
  std::vector<float> w(10 * 784);
  const auto score = [&](const float* x) {
    std::array<float, 10> z{};
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t i = 0; i < 784; ++i) z[c] += w[c * 784 + i] * x[i];
    return z;
  };
  for (int epoch = 0; epoch < 3; ++epoch)  // the multi-class perceptron: it needs neither libm nor tuning
    for (const auto& b : train)
      for (int s = 0; s < b.count; ++s) {
        const float* x = b.x() + 784 * s;
        const auto z = score(x);
        const auto guess = std::size_t(std::ranges::max_element(z) - z.begin()), right = std::size_t(b.labels()[s]);
        if (guess == right) continue;
        for (std::size_t i = 0; i < 784; ++i) w[right * 784 + i] += x[i], w[guess * 784 + i] -= x[i];
      }
  int correct = 0;
  auto test = data::synthetic_digits(1000, 4) | data::batch<50>;
  for (const auto& b : test)
    for (int s = 0; s < b.count; ++s) {
      const auto z = score(b.x() + 784 * s);
      correct += std::ranges::max_element(z) - z.begin() == b.labels()[s];
    }
  MESSAGE("linear classifier: ", correct, " of 1000");
  CHECK(correct > 700);
  CHECK(correct < 980);
}

TEST_CASE("no digits are an error") {
  CHECK_THROWS_WITH_AS(data::synthetic_digits(0), "from_tensor_slices: the data set is empty", strata_error);
}
