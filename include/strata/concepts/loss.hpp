// A loss is the last operation of a network: one number per sample, and its gradient.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>
#include <type_traits>

namespace strata {

namespace detail {
template <class L, label_kind Kind, class Truth>
concept compares_with = L::labels == Kind && requires(std::span<const double> prediction, Truth truth, std::span<double> dx) {
  { L::value(prediction, truth) } -> std::convertible_to<double>;
  { L::gradient(prediction, truth, dx) } -> std::same_as<void>;
};
}  // namespace detail

/// An operation that passes predictions through (its output shape is that of the predictions) and has
///   `static constexpr label_kind labels`      which kind of label it compares with
///   `value(prediction, truth) -> T`           of one sample; prediction: std::span<const T>
///   `gradient(prediction, truth, dx)`         stores d value / d prediction; dx: std::span<T>
/// where truth is a std::int32_t (sparse) or a std::span<const T> (dense). Kernels add values; only the reduction divides by the
/// number of samples of the global batch.
template <class L>
concept loss_function = operation<L> && (detail::compares_with<L, label_kind::sparse, std::int32_t> ||
                                         detail::compares_with<L, label_kind::dense, std::span<const double>>);

inline constexpr reason losses_have_labels_sparse_or_dense{
    "a loss has a static member labels: label_kind::sparse or label_kind::dense"};
inline constexpr reason losses_have_a_static_value_of_a_span_of_predictions_and_its_label{
    "a loss has value(prediction, truth), where truth is as its labels say"};
inline constexpr reason losses_have_gradient_which_stores_into_dx{
    "a loss has gradient(prediction, truth, dx), which returns nothing"};

namespace detail {
/// no_complaint, or the first member that a loss should have.
template <class L, bool Complete = loss_function<L>>
struct loss_verdict {
  using type = no_complaint;
};
template <class L>
struct loss_verdict<L, false> {
  static auto sentence() {
    if constexpr (!operation<L>)
      return lacks<L, lacking_of_operation<L>>{};
    else if constexpr (!requires { requires L::labels == label_kind::sparse || L::labels == label_kind::dense; })
      return lacks<L, losses_have_labels_sparse_or_dense>{};
    else {
      using truth = std::conditional_t<L::labels == label_kind::sparse, std::int32_t, std::span<const double>>;
      if constexpr (!requires(std::span<const double> prediction, truth of) {
                      { L::value(prediction, of) } -> std::convertible_to<double>;
                    })
        return lacks<L, losses_have_a_static_value_of_a_span_of_predictions_and_its_label>{};
      else
        return lacks<L, losses_have_gradient_which_stores_into_dx>{};
    }
  }
  using type = typename decltype(sentence())::type;
};

/// Takes the place of an incomplete loss, so that its sentence is the only error. Programs that use it do not link.
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
