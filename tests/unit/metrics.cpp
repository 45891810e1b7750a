// Metrics: values worked out by hand, ties among them.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/auc.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/confusion_matrix.hpp>
#include <strata/metrics/f1_score.hpp>
#include <strata/metrics/r2_score.hpp>
#include <strata/metrics/root_mean_squared_error.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>
#include <utility>
#include <vector>

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

namespace {
/// What M reports on samples of one prediction, each with its truth.
template <class M>
double result_of(std::initializer_list<std::pair<float, float>> samples) {
  std::vector<double> sums(std::size_t(M::sums(1)));
  for (const auto& [p, t] : samples)
    M::add(std::span<const float>(&p, 1), std::span<const float>(&t, 1), std::span<double>(sums));
  return M::result(sums);
}
}  // namespace

TEST_CASE("precision, recall and their counts: the threshold itself is negative, 0 of 0 is 0") {
  const auto samples = {std::pair{0.9f, 1.f}, {0.5f, 1.f}, {0.6f, 0.f}, {0.1f, 0.f}, {0.8f, 1.f}};
  CHECK(result_of<true_positives<>>(samples) == 2);
  CHECK(result_of<false_negatives<>>(samples) == 1);
  CHECK(result_of<precision_score<>>(samples) == doctest::Approx(2 / 3.));
  CHECK(result_of<recall<>>(samples) == doctest::Approx(2 / 3.));
  CHECK(result_of<precision_score<threshold<0.95_r>>>(samples) == 0);
  CHECK(result_of<recall<>>({{0.1f, 0.f}}) == 0);
}

TEST_CASE("area under a curve") {
  CHECK(result_of<auc<>>({{0.1f, 0.f}, {0.2f, 0.f}, {0.8f, 1.f}, {1.f, 1.f}}) == 1);
  CHECK(result_of<auc<>>({{0.9f, 0.f}, {1.f, 0.f}, {0.f, 1.f}}) == 0);
  CHECK(result_of<auc<>>({{0.5f, 0.f}, {0.5f, 1.f}}) == 0.5);
  CHECK(result_of<auc<>>({{0.5f, 1.f}}) == 0);  // without negatives there is no curve
  CHECK(result_of<auc<pr_curve>>({{0.1f, 0.f}, {0.8f, 1.f}}) == 1);
  SUBCASE("what is no probability stays within the intervals") {
    CHECK(result_of<auc<>>({{-3.f, 0.f}, {std::nanf(""), 0.f}, {1e30f, 1.f}}) == 1);
  }
}

TEST_CASE("F1: a class without samples and predictions counts as 0") {
  CHECK(f1_score<macro_average>::result(std::array{2., 1., 1., 0., 0., 0.}) == doctest::Approx(1 / 3.));
  CHECK(f1_score<weighted_average>::result(std::array{2., 1., 1., 0., 0., 0.}) == doctest::Approx(2 / 3.));
  CHECK(f1_score<micro_average>::result(std::array{2., 1., 1., 1., 0., 0.}) == doctest::Approx(3 / 4.));
}

TEST_CASE("errors of numbers") {
  CHECK(result_of<root_mean_squared_error>({{1.f, 4.f}, {1.f, 1.f}}) == doctest::Approx(std::sqrt(4.5)));
  CHECK(result_of<r2_score>({{1.f, 1.f}, {3.f, 3.f}}) == 1);
  CHECK(result_of<r2_score>({{2.f, 1.f}, {2.f, 3.f}}) == 0);
  CHECK(result_of<r2_score>({{2.f, 1.f}, {2.f, 1.f}}) == 0);  // nothing to explain
}
