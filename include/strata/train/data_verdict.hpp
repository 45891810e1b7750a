// Diagnostics for data that do not fit a network and its loss.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/network/sequential.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/fit_options.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined: the type name is the error message.
template <int... Extents>
struct the_network_takes;
template <int... Extents>
struct the_data_set_yields;
template <int... Extents>
struct the_network_predicts;
template <int... Extents>
struct the_targets_have;
template <class T>
struct the_network_computes_in;
template <class T>
struct the_batches_hold;
}  // namespace core
template <class Taken, class Yielded, class Why>
struct data_mismatch;
namespace core {
template <class Loss, label_kind Wanted>
struct the_loss_takes_labels;
template <label_kind Given>
struct the_data_set_has_labels;
}  // namespace core

namespace reasons {
inline constexpr reason input_of_the_network_has_the_shape_of_one_sample{"input<...> has the extents of one sample"};
inline constexpr reason begin_with_input_of_the_shape_of_the_data_then_flatten{
    "the data have as many numbers in another shape: begin with input<their extents> and flatten"};
inline constexpr reason begin_with_input_of_the_shape_of_the_data_then_reshape{
    "the data have as many numbers in another shape: begin with input<their extents> and reshape<...>"};
inline constexpr reason samples_in_a_flat_vector_need_a_shape_write_data_array{
    "a vector of numbers has samples of one number: data::array<float, shape{4}>(values) has samples of four"};
inline constexpr reason the_targets_have_the_shape_of_the_predictions{"the last layer has as many units as a target has numbers"};
inline constexpr reason use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch{
    "the loss takes one-hot rows: use sparse_categorical_crossentropy, or put data::one_hot<classes> before batch"};
inline constexpr reason this_loss_takes_targets_of_floating_point_numbers_make_them_a_vector_of_float{
    "the loss takes targets: a range of float or double instead of integers"};
inline constexpr reason use_categorical_crossentropy_or_leave_out_one_hot{
    "the loss takes class numbers: use categorical_crossentropy, or leave out one_hot"};
inline constexpr reason class_numbers_are_integers_make_the_labels_a_vector_of_int{
    "the loss takes class numbers: a range of int instead of float"};
inline constexpr reason the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y{
    "the loss compares with labels: data::from_tensor_slices(x, y)"};
inline constexpr reason leave_out_double_in_batch{"the network computes in float: write batch<N> without double"};
inline constexpr reason fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set{
    "fit and evaluate take arrays of numbers, x and y, or batches: data::from_tensor_slices(x, y) | data::batch<64>"};
inline constexpr reason predict_takes_an_array_of_numbers_or_batches_of_a_data_set{
    "predict takes an array of numbers, or batches: data::from_tensor_slices(x) | data::batch<64>"};
inline constexpr reason x_and_y_are_contiguous_numbers_such_as_a_vector_of_float{
    "arrays have their numbers one after the other in memory: a vector or span of float, not a vector of vectors"};
inline constexpr reason data_of_another_shape_get_it_from_data_array_or_data_map_to{
    "the data have as many numbers in another shape: data::array<float, shape{28, 28, 1}>(values) has the network's"};
inline constexpr reason columns_belong_to_a_graph_whose_outputs_are_compared{
    "data with columns are for a graph, and a trainer that compares its outputs: trainer{graph<kind>{}, adam{}, "
    "compare<kind>(sparse_categorical_crossentropy{})}"};
inline constexpr reason the_data_must_come_in_batches_put_batch_after_it{"fit and evaluate take batches: data | data::batch<64>"};
}  // namespace reasons

namespace detail {

template <class Loss>
constexpr const reason& why_other_labels(label_kind given, shape target) {
  if (given == label_kind::none) return reasons::the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y;
  if (Loss::labels == label_kind::dense)
    return takes_classes<Loss> ? reasons::use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch
                               : reasons::this_loss_takes_targets_of_floating_point_numbers_make_them_a_vector_of_float;
  return target.size() == 1 ? reasons::class_numbers_are_integers_make_the_labels_a_vector_of_int
                            : reasons::use_categorical_crossentropy_or_leave_out_one_hot;
}

/// Checks that a source has what a program needs: no_complaint, or the diagnostic.
template <class Program, class Source, bool NeedsLabels>
struct data_verdict {
  using network = typename Program::network;
  using loss = typename Program::loss;
  using T = typename Program::value_type;
  using held = typename Source::value_type::value_type;
  static constexpr shape taken = network::input_shape, yielded = Source::sample_shape, predicted = network::output_shape;

  static constexpr const reason& why_other_shape() {
    if (yielded == shape{1}) return reasons::samples_in_a_flat_vector_need_a_shape_write_data_array;
    if (yielded.size() != taken.size()) return reasons::input_of_the_network_has_the_shape_of_one_sample;
    if (!NeedsLabels)
      return reasons::data_of_another_shape_get_it_from_data_array_or_data_map_to;  // the network is trained already
    return taken.rank() == 1 ? reasons::begin_with_input_of_the_shape_of_the_data_then_flatten
                             : reasons::begin_with_input_of_the_shape_of_the_data_then_reshape;
  }
  static auto sentence() {
    if constexpr (yielded != taken)
      return std::type_identity<
          data_mismatch<typename spelled<the_network_takes, taken>::type, typename spelled<the_data_set_yields, yielded>::type,
                        because<why_other_shape()>>>{};
    else if constexpr (NeedsLabels && Source::labels != loss::labels)
      return std::type_identity<data_mismatch<the_loss_takes_labels<loss, loss::labels>, the_data_set_has_labels<Source::labels>,
                                              because<why_other_labels<loss>(Source::labels, Source::target_shape)>>>{};
    else if constexpr (NeedsLabels && loss::labels == label_kind::dense && Source::target_shape != predicted)
      return std::type_identity<data_mismatch<typename spelled<the_network_predicts, predicted>::type,
                                              typename spelled<the_targets_have, Source::target_shape>::type,
                                              because<reasons::the_targets_have_the_shape_of_the_predictions>>>{};
    else if constexpr (sizeof(held) > sizeof(T))
      return std::type_identity<
          data_mismatch<the_network_computes_in<T>, the_batches_hold<held>, because<reasons::leave_out_double_in_batch>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Program, class Source, bool NeedsLabels>
  requires(!batch_source<Source> && !requires { typename Program::output_nodes; })
struct data_verdict<Program, Source, NeedsLabels> {
  static constexpr bool is_view = data::detail::is_element_view<Source>;
  using type =
      wrong_argument<Source, because<(is_view       ? reasons::the_data_must_come_in_batches_put_batch_after_it
                                      : NeedsLabels ? reasons::fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set
                                                    : reasons::predict_takes_an_array_of_numbers_or_batches_of_a_data_set)>>;
};
template <class Program, class Source, bool NeedsLabels>
  requires(batch_source<Source> && has_columns<Source> && !requires { typename Program::output_nodes; })
struct data_verdict<Program, Source, NeedsLabels> {
  using type = wrong_argument<Source, because<reasons::columns_belong_to_a_graph_whose_outputs_are_compared>>;
};
template <class Program, bool NeedsLabels>
struct data_verdict<Program, data::refused_view, NeedsLabels> {
  using type = told;
};

/// Columns of arrays instead of a source.
template <class... Columns>
struct given_columns {};
template <class Program, class... Columns, bool NeedsLabels>
  requires(!requires { typename Program::output_nodes; })
struct data_verdict<Program, given_columns<Columns...>, NeedsLabels> {
  using type = wrong_argument<given_columns<Columns...>, because<reasons::columns_belong_to_a_graph_whose_outputs_are_compared>>;
};

/// Arrays instead of a source. Y: void for samples without labels.
template <class X, class Y>
struct arrays {};
template <class X, class Y>
using given_arrays = arrays<std::remove_cvref_t<X>, std::remove_cvref_t<Y>>;
template <class Program, class X, class Y, bool NeedsLabels>
struct data_verdict<Program, arrays<X, Y>, NeedsLabels> {
  template <class Samples>
  using batches_of = decltype(batches_in_order<typename Program::value_type>(std::declval<Samples>(), {}, batch_size(1)));
  static auto sentence() {
    if constexpr (!array_traits<X>::valid)
      return std::type_identity<wrong_argument<X, because<reasons::x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else if constexpr (!NeedsLabels)
      return data_verdict<Program, batches_of<samples_of_array_t<Program, X>>, false>{};
    else if constexpr (!array_traits<Y>::valid)
      return std::type_identity<wrong_argument<Y, because<reasons::x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else
      return data_verdict<Program, batches_of<samples_of_arrays_t<Program, X, Y>>, true>{};
  }
  using type = typename decltype(sentence())::type;
};

}  // namespace detail

}  // namespace strata
