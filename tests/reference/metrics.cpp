// Metrics against the recordings: means over the first five samples and over all eight, and those that add up several numbers.
#include <strata/concepts/metric.hpp>
#include <strata/losses/cosine_similarity.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/losses/options.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/auc.hpp>
#include <strata/metrics/binary_accuracy.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/confusion_matrix.hpp>
#include <strata/metrics/f1_score.hpp>
#include <strata/metrics/r2_score.hpp>
#include <strata/metrics/root_mean_squared_error.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;

static test::recording recorded("metrics");

namespace {

/// Checks a metric; an image is measured position by position, each as a row.
template <class Metric, class T>
void check_as(const std::string& name) {
  INFO(name << ", " << sizeof(T) << " bytes");
  const auto extents = recorded.extents(name + "/predictions");
  const std::vector<T> predictions = recorded.tensor<T>(name + "/predictions");
  const std::size_t samples = extents.front(), row = extents.back(), rows = predictions.size() / row;
  const bool sparse = recorded.extents(name + "/labels").size() < extents.size();
  const std::vector<std::int32_t> classes = sparse ? recorded.integers(name + "/labels") : std::vector<std::int32_t>();
  const std::vector<T> truth = sparse ? std::vector<T>() : recorded.tensor<T>(name + "/labels");

  metric_sum total;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const T> one(predictions.data() + r * row, row);
    if constexpr (requires { Metric::measure(one, std::int32_t()); })
      if (sparse) total += {double(Metric::measure(one, classes[r])), 1};
    if constexpr (requires { Metric::measure(one, one); })
      if (!sparse) total += {double(Metric::measure(one, std::span<const T>(truth.data() + r * row, row))), 1};
    if (r + 1 == 5 * rows / samples)
      CHECK(std::abs(total.mean() - recorded.number(name + "/result_of_5")) <= (sizeof(T) == 4 ? 1e-6 : 1e-14));
  }
  REQUIRE(total.count == double(rows));
  CHECK(std::abs(total.mean() - recorded.number(name + "/result")) <= (sizeof(T) == 4 ? 1e-6 : 1e-14));
}

template <metric Metric>
void check(const std::string& name) {
  check_as<Metric, double>(name);
  check_as<Metric, float>(name);
}

}  // namespace

TEST_CASE("accuracies") {
  check<binary_accuracy<>>("binary_accuracy");
  check<binary_accuracy<>>("binary_accuracy_single");
  check<binary_accuracy<0.25_r>>("binary_accuracy_threshold");
  for (const char* name : {"categorical_accuracy", "categorical_accuracy_ties", "categorical_accuracy_image"})
    check<categorical_accuracy>(name);
  for (const char* name :
       {"sparse_categorical_accuracy", "sparse_categorical_accuracy_ties", "sparse_categorical_accuracy_image"})
    check<sparse_categorical_accuracy>(name);
}

TEST_CASE("accuracy is what Keras' compile takes it for") {
  for (const char* name :
       {"binary_accuracy_single", "categorical_accuracy", "categorical_accuracy_ties", "categorical_accuracy_image",
        "sparse_categorical_accuracy", "sparse_categorical_accuracy_ties", "sparse_categorical_accuracy_image"})
    check<accuracy>(name);
}

TEST_CASE("top k") {
  check<top_k_categorical_accuracy<>>("top_k_categorical_accuracy");
  check<top_k_categorical_accuracy<2>>("top_k_categorical_accuracy_2");
  check<top_k_categorical_accuracy<2>>("top_k_categorical_accuracy_ties");
  check<sparse_top_k_categorical_accuracy<>>("sparse_top_k_categorical_accuracy");
  check<sparse_top_k_categorical_accuracy<3>>("sparse_top_k_categorical_accuracy_3");
  check<sparse_top_k_categorical_accuracy<2>>("sparse_top_k_categorical_accuracy_ties");
  check<sparse_top_k_categorical_accuracy<2>>("sparse_top_k_categorical_accuracy_image");
}

TEST_CASE("losses as metrics") {
  for (const char* name : {"mean_absolute_error", "mean_absolute_error_image"}) check<mean_absolute_error>(name);
  for (const char* name : {"mean_squared_error", "mean_squared_error_image"}) check<mean_squared_error>(name);
}

TEST_CASE("no recorded tensor is forgotten") {
  recorded.leave_out_cases("accuracy/");  // the share of equal elements, a metric that strata does not have
  CHECK(recorded.forgotten() == "");
}

static test::recording more("more_metrics");

namespace {

/// The result of a metric of several sums, if they are added over leaves of 7 samples and then over these leaves.
template <class Metric, class T>
std::vector<double> reported(const std::string& name) {
  const std::size_t row = more.extents(name + "/predictions").back(), size = std::size_t(Metric::sums(int(row)));
  const std::vector<T> predictions = more.tensor<T>(name + "/predictions"), truth = more.tensor<T>(name + "/labels");
  std::vector<double> all(size), leaf;
  for (std::size_t n = 0; n < predictions.size() / row; ++n) {
    if (n % 7 == 0) leaf.assign(size, 0);
    Metric::add(std::span<const T>(predictions.data() + n * row, row), std::span<const T>(truth.data() + n * row, row),
                std::span<double>(leaf));
    if (n % 7 == 6 || n + 1 == predictions.size() / row)
      for (std::size_t k = 0; k < size; ++k) all[k] += leaf[k];
  }
  if constexpr (detail::has_result<Metric>) {
    return {Metric::result(all)};
  } else {
    auto values = std::vector<double>(std::size_t(Metric::values(int(row))));
    Metric::results(all, std::span<double>(values));
    return values;
  }
}

template <metric Metric>
void check_sums(const std::string& name, double tolerance = 1e-12) {
  INFO(name);
  const std::vector<double> expected = more.tensor(name + "/result"), single = reported<Metric, float>(name),
                            twice = reported<Metric, double>(name);
  REQUIRE(single.size() == expected.size());
  REQUIRE(twice.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(std::abs(twice[i] - expected[i]) <= tolerance);
    CHECK(std::abs(single[i] - expected[i]) <= std::max(tolerance, 1e-6));
  }
}

}  // namespace

TEST_CASE("counts of right and wrong, and their quotients") {
  using quarter = decision_threshold<0.375_r>;
  check_sums<true_positives<>>("true_positives");
  check_sums<false_positives<>>("false_positives");
  check_sums<true_negatives<>>("true_negatives");
  check_sums<false_negatives<>>("false_negatives");
  check_sums<true_positives<quarter>>("true_positives_threshold");
  check_sums<false_positives<quarter>>("false_positives_threshold");
  check_sums<true_negatives<quarter>>("true_negatives_threshold");
  check_sums<false_negatives<quarter>>("false_negatives_threshold");
  check_sums<precision_score<>>("precision");
  check_sums<precision_score<decision_threshold<0.75_r>>>("precision_threshold");
  check_sums<precision_score<top_k<2>>>("precision_top_k");
  check_sums<precision_score<class_id<3>>>("precision_class_id");
  check_sums<precision_score<quarter, class_id<1>, top_k<2>>>("precision_all");
  check_sums<recall<>>("recall");
  check_sums<recall<decision_threshold<0.75_r>>>("recall_threshold");
  check_sums<recall<top_k<2>>>("recall_top_k");
  check_sums<recall<class_id<3>>>("recall_class_id");
  check_sums<recall<top_k<2>, quarter, class_id<1>>>("recall_all");
}

TEST_CASE("areas under curves") {
  check_sums<auc<>>("auc");
  check_sums<auc<num_thresholds<5>>>("auc_5");
  check_sums<auc<pr_curve>>("auc_pr");
  check_sums<auc<num_thresholds<5>, pr_curve>>("auc_pr_5");
  check_sums<auc<from_logits>>("auc_from_logits");
}

TEST_CASE("F1 scores, the confusion matrix") {
  check_sums<f1_score<>>("f1_score");
  check_sums<f1_score<decision_threshold<0.5_r>, macro_average>>("f1_score_threshold");
  check_sums<f1_score<micro_average>>("f1_score_micro");
  check_sums<f1_score<macro_average>>("f1_score_macro");
  check_sums<f1_score<weighted_average>>("f1_score_weighted");
  check_sums<confusion_matrix<>>("confusion_matrix");
}

TEST_CASE("predictions that are nan or infinite, and rows of one number") {
  check_sums<true_positives<>>("hostile_true_positives");
  check_sums<false_positives<>>("hostile_false_positives");
  check_sums<true_negatives<decision_threshold<0.375_r>>>("hostile_true_negatives");
  check_sums<precision_score<top_k<2>>>("hostile_precision_top_k");
  check_sums<recall<top_k<3>>>("hostile_recall_top_k");
  check_sums<auc<>>("hostile_auc");
  check_sums<auc<pr_curve>>("hostile_auc_pr");
  check_sums<auc<from_logits>>("hostile_auc_from_logits");
  check_sums<f1_score<>>("hostile_f1_score");
}

TEST_CASE("errors of numbers") {
  check_sums<root_mean_squared_error>("root_mean_squared_error");
  check_sums<r2_score>("r2_score");
  double sum = 0;
  const std::vector<double> p = more.tensor("cosine_similarity/predictions"), t = more.tensor("cosine_similarity/labels");
  for (std::size_t i = 0; i < p.size(); i += 4)
    sum += cosine_similarity::measure(std::span<const double>(&p[i], 4), std::span<const double>(&t[i], 4));
  CHECK(std::abs(sum / (double(p.size()) / 4) - more.number("cosine_similarity/result")) <= 1e-6);
}

TEST_CASE("no other recorded tensor is forgotten") { CHECK(more.forgotten() == ""); }
