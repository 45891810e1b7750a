// Metrics are constant expressions, and say which labels they measure.
#include <array>
#include <strata/concepts/metric.hpp>
#include <strata/metrics/accuracy.hpp>
#include <strata/metrics/top_k_categorical_accuracy.hpp>
using namespace strata;

template <class M, bool Sparse, bool Dense>
concept metric_for = metric<M> && measures<M, label_kind::sparse> == Sparse && measures<M, label_kind::dense> == Dense;
static_assert(metric_for<accuracy, true, true>);
static_assert(metric_for<sparse_categorical_accuracy, true, false>);
static_assert(metric_for<categorical_accuracy, false, true>);
static_assert(metric_for<binary_accuracy<>, false, true>);
static_assert(metric_for<sparse_top_k_categorical_accuracy<3>, true, false>);
static_assert(metric_for<top_k_categorical_accuracy<3>, false, true>);
static_assert(!measures<accuracy, label_kind::none>);

static_assert(std::same_as<decltype(binary_accuracy{}), binary_accuracy<0.5_r>>);
static_assert(std::same_as<decltype(top_k_categorical_accuracy{}), top_k_categorical_accuracy<5>>);
static_assert(std::same_as<decltype(sparse_top_k_categorical_accuracy{}), sparse_top_k_categorical_accuracy<5>>);

constexpr std::array scores{0.1, 0.4, 0.4}, row{0., 0., 1.};
constexpr std::span<const double> prediction(scores), truth(row);
static_assert(accuracy::measure(prediction, 1) == 1 && accuracy::measure(prediction, 2) == 0);
static_assert(accuracy::measure(prediction, truth) == 0);
static_assert(top_k_categorical_accuracy<1>::measure(prediction, truth) == 1);
static_assert(binary_accuracy<>::measure(prediction, truth) == 2. / 3);
