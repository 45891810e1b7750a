// Metrics are constant expressions, and declare which labels they measure.
#include <array>
#include <strata/concepts/metric.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/auc.hpp>
#include <strata/metrics/confusion.hpp>
#include <strata/metrics/confusion_matrix.hpp>
#include <strata/metrics/f1_score.hpp>
#include <strata/metrics/r2_score.hpp>
#include <strata/metrics/root_mean_squared_error.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>
using namespace strata;
using namespace strata::core;

template <class M, bool Sparse, bool Dense>
concept metric_for = metric<M> && measures<M, label_kind::sparse> == Sparse && measures<M, label_kind::dense> == Dense;
static_assert(metric_for<accuracy, true, true>);
static_assert(metric_for<sparse_categorical_accuracy, true, false>);
static_assert(metric_for<categorical_accuracy, false, true>);
static_assert(metric_for<binary_accuracy<>, false, true>);
static_assert(metric_for<sparse_top_k_categorical_accuracy<3>, true, false>);
static_assert(metric_for<top_k_categorical_accuracy<3>, false, true>);
static_assert(!measures<accuracy, label_kind::none>);
static_assert(metric_for<true_positives<>, true, true> && metric_for<false_negatives<top_k<2>>, true, true>);
static_assert(metric_for<precision_score<class_id<1>>, true, true> && metric_for<recall<>, true, true>);
static_assert(metric_for<auc<>, true, true> && metric_for<f1_score<>, true, true> && metric_for<confusion_matrix<>, true, true>);
static_assert(metric_for<root_mean_squared_error, false, true> && metric_for<r2_score, false, true>);

static_assert(std::same_as<decltype(binary_accuracy{}), binary_accuracy<0.5_r>>);
static_assert(std::same_as<decltype(top_k_categorical_accuracy{}), top_k_categorical_accuracy<5>>);
static_assert(std::same_as<decltype(sparse_top_k_categorical_accuracy{}), sparse_top_k_categorical_accuracy<5>>);

constexpr std::array scores{0.1, 0.4, 0.4}, row{0., 0., 1.};
constexpr std::span<const double> prediction(scores), truth(row);
static_assert(accuracy::measure(prediction, 1) == 1 && accuracy::measure(prediction, 2) == 0);
static_assert(accuracy::measure(prediction, truth) == 0);
static_assert(top_k_categorical_accuracy<1>::measure(prediction, truth) == 1);
static_assert(binary_accuracy<>::measure(prediction, truth) == 2. / 3);

// Keras' defaults, and options in any order.
static_assert(auc<>::settings.num_thresholds == 200 && !auc<>::settings.pr && recall<>::settings.threshold.value() == 0.5);
static_assert(precision_score<top_k<3>, decision_threshold<0.7_r>>::settings.top_k == 3);
static_assert(f1_score<>::average == averaging::none && f1_score<weighted_average>::average == averaging::weighted);

// The number of sums for three predictions.
static_assert(detail::pairs_of_sums<accuracy>(3) == 1 && detail::pairs_of_sums<recall<>>(3) == 1);
static_assert(detail::pairs_of_sums<confusion_matrix<>>(3) == 5 && detail::pairs_of_sums<confusion_matrix<>>(1) == 2);
static_assert(detail::pairs_of_sums<auc<>>(3) == 200 && detail::pairs_of_sums<f1_score<>>(3) == 5);
static_assert(recall<class_id<2>>::refusal(3) == nullptr &&
              recall<class_id<3>>::refusal(3) == &reasons::class_id_must_be_less_than_the_number_of_predictions);

template <class M, std::size_t N>
constexpr std::array<double, N> sums_of(auto of) {
  std::array<double, N> sums{};
  M::add(prediction, of, std::span<double>(sums));
  return sums;
}
static_assert(sums_of<confusion_matrix<>, 9>(2) == std::array{0., 0., 0., 0., 0., 0., 0., 1., 0.});
static_assert(sums_of<confusion_matrix<>, 9>(truth) == sums_of<confusion_matrix<>, 9>(2));
static_assert(sums_of<precision_score<decision_threshold<0.3_r>>, 2>(2) == std::array{1., 2.});
static_assert(sums_of<recall<top_k<1>>, 2>(truth) == std::array{0., 1.});  // of equal ones, the first
static_assert(recall<>::result(std::array{0., 0.}) == 0 && recall<>::result(std::array{1., 4.}) == 0.25);
static_assert(f1_score<macro_average>::result(std::array{1., 0., 0., 0., 1., 1.}) == 0.5);
