// A loss is the last operation of a network: one number per sample, and its gradient.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>
#include <type_traits>

namespace strata {

namespace core {
/// The truth of a loss that depends on the predictions only.
struct no_truth {};
}  // namespace core

namespace reasons {
inline constexpr reason losses_have_labels_sparse_dense_or_none;
inline constexpr reason losses_have_a_static_value_of_a_span_of_predictions_and_its_label;
inline constexpr reason losses_have_gradient_which_stores_into_dx;
}  // namespace reasons

namespace detail {
/// What a loss compares the predictions of one sample with.
template <class T, label_kind Kind>
struct truth_of_labels {
  using type = std::conditional_t<Kind == label_kind::sparse, std::int32_t,
                                  std::conditional_t<Kind == label_kind::dense, std::span<const T>, no_truth>>;
};

template <class L>
auto requirements_of_loss() {
  if constexpr (!operation<L>)
    return lacks<L, lacking_of_operation<L>>{};
  else if constexpr (!requires { typename truth_of_labels<double, L::labels>::type; })
    return lacks<L, reasons::losses_have_labels_sparse_dense_or_none>{};
  else {
    using truth = typename truth_of_labels<double, L::labels>::type;
    if constexpr (!requires(std::span<const double> prediction, truth of) {
                    { L::value(prediction, of) } -> std::convertible_to<double>;
                  })
      return lacks<L, reasons::losses_have_a_static_value_of_a_span_of_predictions_and_its_label>{};
    else if constexpr (!requires(std::span<const double> prediction, truth of, std::span<double> dx) {
                         { L::gradient(prediction, of, dx) } -> std::same_as<void>;
                       })
      return lacks<L, reasons::losses_have_gradient_which_stores_into_dx>{};
    else
      return no_complaint{};
  }
}
/// no_complaint, or the first requirement that a loss does not meet.
template <class L>
using loss_verdict = decltype(requirements_of_loss<L>());
}  // namespace detail

namespace core {
/// An operation that passes predictions through (its output shape is that of the predictions) and has
///   `static constexpr label_kind labels`      the kind of label that it takes
///   `value(prediction, truth) -> T`           of one sample; prediction: std::span<const T>
///   `gradient(prediction, truth, dx)`         stores d value / d prediction; dx: std::span<T>
/// where truth is a std::int32_t (sparse), a std::span<const T> (dense), or no_truth (none), which an output of a graph may have.
/// Kernels add values; only the reduction divides by the number of samples of the global batch.
template <class L>
concept loss_function = std::same_as<detail::loss_verdict<L>, detail::no_complaint>;
}  // namespace core

namespace detail {
/// Replaces an incomplete loss, so that its diagnostic is the only error. Programs that use it do not link.
template <class L>
struct stand_in_loss {
  constexpr stand_in_loss(const L&) {}
  static constexpr auto name = "loss";
  static constexpr label_kind labels = [] {
    if constexpr (requires { requires L::labels == label_kind::dense; })
      return label_kind::dense;
    else
      return label_kind::sparse;
  }();
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T, class Truth>
  static T value(std::span<const T>, Truth);
  template <class T, class Truth>
  static void gradient(std::span<const T>, Truth, std::span<T>);
};
}  // namespace detail

}  // namespace strata
