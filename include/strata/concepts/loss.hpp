// A loss is the last operation of a network: one number per sample, and its gradient.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>

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

}  // namespace strata
