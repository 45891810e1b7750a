// One loss that is complete, and one for each member that may be missing.
#include <strata/concepts/loss.hpp>
using namespace strata;
using namespace strata::core;

struct complete {
  static constexpr auto name = "complete";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static T value(std::span<const T>, std::span<const T>);
  template <class T>
  static void gradient(std::span<const T>, std::span<const T>, std::span<T>);
};
static_assert(loss_function<complete>);

struct sparse : complete {
  static constexpr label_kind labels = label_kind::sparse;
  template <class T>
  static T value(std::span<const T>, std::int32_t);
  template <class T>
  static void gradient(std::span<const T>, std::int32_t, std::span<T>);
};
static_assert(loss_function<sparse>);

struct without_name : complete {
  static void name();
};
struct without_output_shape : complete {
  static void output_shape();
};
struct without_labels : complete {
  static void labels();
};
struct without_truth : complete {
  static constexpr label_kind labels = label_kind::none;
  template <class T>
  static T value(std::span<const T>, no_truth);
  template <class T>
  static void gradient(std::span<const T>, no_truth, std::span<T>);
};
static_assert(loss_function<without_truth>);
struct without_truth_that_takes_one : complete {
  static constexpr label_kind labels = label_kind::none;
};
struct without_value : complete {
  static void value();
};
struct without_gradient : complete {
  static void gradient();
};
struct that_returns_its_gradient : complete {
  template <class T>
  static T gradient(std::span<const T>, std::span<const T>, std::span<T>);
};
struct with_the_other_labels : complete {
  static constexpr label_kind labels = label_kind::sparse;
};
struct that_writes_to_its_prediction : complete {
  template <class T>
  static T value(std::span<T>, std::span<const T>);
};
static_assert(!loss_function<int>);
static_assert(!loss_function<without_name>);
static_assert(!loss_function<without_output_shape>);
static_assert(!loss_function<without_labels>);
static_assert(!loss_function<without_value>);
static_assert(!loss_function<without_truth_that_takes_one>);
static_assert(!loss_function<without_gradient>);
static_assert(!loss_function<that_returns_its_gradient>);
static_assert(!loss_function<with_the_other_labels>);
static_assert(!loss_function<that_writes_to_its_prediction>);

template <class L, const reason& Why>
constexpr bool is_told = std::is_same_v<typename detail::loss_verdict<L>::type, incomplete_model<L, detail::because<Why>>>;
static_assert(std::is_same_v<detail::loss_verdict<complete>::type, detail::no_complaint>);
static_assert(is_told<int, reasons::operations_have_a_name> && is_told<without_name, reasons::operations_have_a_name>);
static_assert(is_told<without_output_shape, reasons::operations_have_output_shape_of_the_shape_of_their_input>);
static_assert(is_told<without_labels, reasons::losses_have_labels_sparse_dense_or_none>);
static_assert(is_told<without_value, reasons::losses_have_a_static_value_of_a_span_of_predictions_and_its_label>);
static_assert(is_told<with_the_other_labels, reasons::losses_have_a_static_value_of_a_span_of_predictions_and_its_label>);
static_assert(is_told<that_writes_to_its_prediction, reasons::losses_have_a_static_value_of_a_span_of_predictions_and_its_label>);
static_assert(is_told<without_gradient, reasons::losses_have_gradient_which_stores_into_dx>);
static_assert(is_told<that_returns_its_gradient, reasons::losses_have_gradient_which_stores_into_dx>);
// The stand-in for a type that is no loss.
static_assert(loss_function<detail::stand_in_loss<int>> && loss_function<detail::stand_in_loss<without_value>>);
static_assert(detail::stand_in_loss<without_value>::labels == label_kind::dense);
