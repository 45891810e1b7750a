// Metrics: values worked out by hand, ties among them.
#include <doctest/doctest.h>

#include <array>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>

using namespace strata;

namespace {

template <std::size_t N>
constexpr std::span<const float> of(const std::array<float, N>& values) {
  return values;
}

constexpr std::array scores{0.1f, 0.4f, 0.2f, 0.4f, 0.3f};

constexpr std::array<float, 5> one_hot(std::size_t i) {
  std::array<float, 5> row{};
  row[i] = 1;
  return row;
}

}  // namespace

TEST_CASE("categorical accuracy: of equal predictions, the first") {
  CHECK(sparse_categorical_accuracy::measure(of(scores), 1) == 1);
  CHECK(sparse_categorical_accuracy::measure(of(scores), 3) == 0);
  CHECK(categorical_accuracy::measure(of(scores), of(one_hot(1))) == 1);
  CHECK(categorical_accuracy::measure(of(scores), of(one_hot(3))) == 0);
  CHECK(categorical_accuracy::measure(of(scores), of(std::array{0.f, 0.5f, 0.f, 0.5f, 0.f})) == 1);
}

TEST_CASE("binary accuracy: the threshold itself is class 0") {
  constexpr std::array p{0.5f, 0.51f, 0.49f, 0.9f};
  CHECK(binary_accuracy<>::measure(of(p), of(std::array{0.f, 1.f, 0.f, 1.f})) == 1);
  CHECK(binary_accuracy<>::measure(of(p), of(std::array{1.f, 1.f, 0.f, 0.f})) == 0.5);
  CHECK(binary_accuracy<0.25_r>::measure(of(p), of(std::array{1.f, 1.f, 1.f, 0.f})) == 0.75);
}

TEST_CASE("top k: right if fewer than k are greater") {
  CHECK(sparse_top_k_categorical_accuracy<1>::measure(of(scores), 3) == 1);  // a tie counts
  CHECK(sparse_top_k_categorical_accuracy<1>::measure(of(scores), 4) == 0);
  CHECK(sparse_top_k_categorical_accuracy<2>::measure(of(scores), 4) == 0);
  CHECK(sparse_top_k_categorical_accuracy<3>::measure(of(scores), 4) == 1);
  CHECK(sparse_top_k_categorical_accuracy<4>::measure(of(scores), 0) == 0);
  CHECK(sparse_top_k_categorical_accuracy<>::measure(of(scores), 0) == 1);
  CHECK(top_k_categorical_accuracy<2>::measure(of(scores), of(one_hot(4))) == 0);
  CHECK(top_k_categorical_accuracy<3>::measure(of(scores), of(one_hot(4))) == 1);
}

TEST_CASE("accuracy goes by the labels and by the number of predictions") {
  CHECK(accuracy::measure(of(scores), 1) == 1);
  CHECK(accuracy::measure(of(scores), 0) == 0);
  CHECK(accuracy::measure(of(scores), of(one_hot(1))) == 1);
  CHECK(accuracy::measure(of(scores), of(one_hot(2))) == 0);
  CHECK(accuracy::measure(of(std::array{0.7f}), of(std::array{1.f})) == 1);
  CHECK(accuracy::measure(of(std::array{0.5f}), of(std::array{1.f})) == 0);
  CHECK(accuracy::measure(of(std::array{0.7f}), 1) == 1);
  CHECK(accuracy::measure(of(std::array{0.7f}), 0) == 0);
}
