// Metrics that are complete, and one for each member that may be missing.
#include <strata/concepts/metric.hpp>
using namespace strata;
using namespace strata::core;

struct of_classes {
  static constexpr auto name = "of_classes";
  template <class T>
  static double measure(std::span<const T>, std::int32_t);
};
struct of_rows {
  static constexpr auto name = "of_rows";
  template <class T>
  static bool measure(std::span<const T>, std::span<const T>);
};
static_assert(metric<of_classes> && measures<of_classes, label_kind::sparse> && !measures<of_classes, label_kind::dense>);
static_assert(metric<of_rows> && measures<of_rows, label_kind::dense> && !measures<of_rows, label_kind::sparse>);
static_assert(!measures<of_rows, label_kind::none>);

struct of_several_numbers {
  static constexpr auto name = "of_several_numbers";
  static constexpr int sums(int predictions) { return predictions; }
  template <class T>
  static void add(std::span<const T>, std::int32_t, std::span<double>);
  static double result(std::span<const double>);
};
struct of_several_values : of_several_numbers {
  static void result();
  static constexpr int values(int predictions) { return predictions; }
  static void results(std::span<const double>, std::span<double>);
};
static_assert(measures<of_several_numbers, label_kind::sparse> && !measures<of_several_numbers, label_kind::dense>);
static_assert(measures<of_several_values, label_kind::sparse>);
static_assert(detail::pairs_of_sums<of_several_numbers>(5) == 3 && detail::pairs_of_sums<of_rows>(5) == 1);

struct without_name : of_rows {
  static void name();
};
struct without_measure {
  static constexpr auto name = "without_measure";
};
struct that_measures_nothing {
  static constexpr auto name = "that_measures_nothing";
  template <class T>
  static void measure(std::span<const T>, std::span<const T>);
};
struct without_result : of_several_numbers {
  static void result();
};
static_assert(!metric<int>);
static_assert(!metric<without_result>);
static_assert(!metric<without_name>);
static_assert(!metric<without_measure>);
static_assert(!metric<that_measures_nothing>);

constexpr metric_sum sum(metric_sum a, metric_sum b) { return a += b; }
static_assert(sum({3, 2}, {1, 6}).mean() == 0.5 && metric_sum{}.mean() == 0);
