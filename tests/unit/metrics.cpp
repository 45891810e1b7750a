// Metrics: values computed by hand, also with ties.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
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

TEST_CASE("a prediction that is nan is never right") {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const auto rights = [](const auto& row, auto measure) {  // for each label
    std::array<double, 3> all{};
    for (int label = 0; label < 3; ++label) all[std::size_t(label)] = measure(std::span<const float>(row), label);
    return all;
  };
  const auto top = [](auto p, int label) { return sparse_top_k_categorical_accuracy<2>::measure(p, label); };
  const auto all_top = [](auto p, int label) { return sparse_top_k_categorical_accuracy<9>::measure(p, label); };
  const auto first = [](auto p, int label) { return sparse_categorical_accuracy::measure(p, label); };
  constexpr std::array<double, 3> none{};
  for (const auto& row :
       {std::array{nan, nan, nan}, {nan, 0.2f, 0.7f}, {0.2f, nan, 0.7f}, {0.7f, 0.2f, nan}, {infinity, nan, 0.f}}) {
    CHECK(rights(row, top) == none);
    CHECK(rights(row, all_top) == none);
    CHECK(rights(row, first) == none);
    double sums[9] = {};
    confusion_matrix<>::add(std::span<const float>(row), 1, std::span<double>(sums));
    CHECK(std::ranges::count(sums, 0) == 9);
    CHECK(top_k_categorical_accuracy<2>::measure(std::span<const float>(row), of(std::array{1.f, 0.f, 0.f})) == 0);
  }
  // An infinite prediction is ranked, but is never in the top k: see tf.math.in_top_k.
  CHECK(rights(std::array{infinity, 0.2f, 0.1f}, first) == std::array{1., 0., 0.});
  CHECK(rights(std::array{infinity, 0.2f, 0.1f}, top) == std::array{0., 1., 0.});
  CHECK(rights(std::array{-infinity, 0.2f, 0.1f}, top) == std::array{0., 1., 1.});
  CHECK(rights(std::array{-infinity, -infinity, -infinity}, top) == none);
  CHECK(binary_accuracy<>::measure(of(std::array{nan, nan, 0.2f, infinity}), of(std::array{0.f, 1.f, 0.f, 1.f})) == 0.5);
  CHECK(accuracy::measure(of(std::array{nan}), 0) == 0);
  double one[4] = {};
  confusion_matrix<>::add(of(std::array{nan}), 0, std::span<double>(one));
  CHECK(std::ranges::count(one, 0) == 4);
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
/// The result of M for samples of one prediction, each with its target.
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
  CHECK(result_of<precision_score<decision_threshold<0.95_r>>>(samples) == 0);
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
  CHECK(result_of<r2_score>({{2.f, 1.f}, {2.f, 1.f}}) == 0);  // there is no variance to explain
}

namespace {
/// R2 of targets around an offset, added over leaves, and the same in two passes.
template <class T>
std::pair<double, double> r2_around(double offset, double spread) {
  std::vector<T> t, p;
  for (int i = 0; i < 20'000; ++i) {
    t.push_back(T(offset + spread * std::sin(i)));
    p.push_back(T(double(t.back()) + spread * std::sin(i * i) / 2));
  }
  long double mean = 0, variance = 0, error = 0;
  for (const T each : t) mean += each;
  mean /= static_cast<long double>(t.size());
  std::vector<double> all(6);
  for (std::size_t i = 0; i < t.size(); ++i) {
    std::vector<double> one(6);
    r2_score::add(std::span<const T>(&p[i], 1), std::span<const T>(&t[i], 1), std::span<double>(one));
    for (std::size_t k = 0; k < 6; ++k) all[k] += one[k];
    const long double d = t[i] - mean, e = static_cast<long double>(p[i]) - t[i];
    variance += d * d, error += e * e;
  }
  return {r2_score::result(all), double(1 - error / variance)};
}
}  // namespace

TEST_CASE("R2 keeps its digits where the mean of the truth is large") {
  const auto check = [](std::pair<double, double> found_and_truth, double tolerance) {
    CHECK(found_and_truth.second > 0.5);
    CHECK(std::abs(found_and_truth.first - found_and_truth.second) < tolerance);
  };
  check(r2_around<float>(0, 1), 1e-12);
  check(r2_around<float>(1e6, 1), 1e-12);
  check(r2_around<float>(-1e6, 0.2), 1e-12);
  check(r2_around<float>(1e9, 300), 1e-12);
  check(r2_around<double>(1e6, 1), 1e-9);
  check(r2_around<double>(1e9, 1), 1e-5);
  CHECK(std::isnan(r2_around<double>(0, 1e200).first));  // the squares are infinite
}

TEST_CASE("an error that is nan is not hidden by a truth that never changes") {
  const float nan = std::nanf("");
  for (const auto& samples : {std::initializer_list<std::pair<float, float>>{{nan, 1.f}, {1.f, 1.f}}, {{1.f, nan}, {2.f, 3.f}}}) {
    CHECK(std::isnan(result_of<r2_score>(samples)));
    CHECK(std::isnan(result_of<root_mean_squared_error>(samples)));
  }
}
