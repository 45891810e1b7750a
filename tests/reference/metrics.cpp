// Metrics against the recordings: the mean over the first five samples, and over all eight.
#include <strata/concepts/metric.hpp>
#include <strata/losses/mean_absolute_error.hpp>
#include <strata/losses/mean_squared_error.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/binary_accuracy.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>

#include "recorded.hpp"

using namespace strata;

static test::recording recorded("metrics");

namespace {

/// An image is measured position by position, each with a row of its own.
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
  recorded.leave_out_cases("accuracy/");  // the share of equal numbers, which strata does not have
  CHECK(recorded.forgotten() == "");
}
