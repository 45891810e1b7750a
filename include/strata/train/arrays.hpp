// x and y, or the columns of a graph, of fit, evaluate and predict as arrays, and the samples and batches made of them.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/slice.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/fit_options.hpp>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::detail {

/// A contiguous range of elements, such as a vector; or a data::array.
template <class A>
concept array_argument = (std::ranges::contiguous_range<A> && std::ranges::sized_range<A> && !batch_source<A>) ||
                         data::detail::row_array<std::remove_cvref_t<A>>;

/// How an array is read: `flat` if it is a range of scalars, which need a shape to be rows.
template <class A>
struct array_traits {
  static constexpr bool valid = false, flat = false, integral = false;
};
template <array_argument A>
  requires(!data::detail::row_array<A> && data::detail::numbers<std::ranges::range_value_t<A>>::valid)
struct array_traits<A> {
  using numbers = data::detail::numbers<std::ranges::range_value_t<A>>;
  using value_type = typename numbers::value_type;
  static constexpr bool valid = !std::same_as<value_type, bool>, flat = std::is_arithmetic_v<std::ranges::range_value_t<A>>,
                        integral = flat && std::integral<value_type>;
};
template <data::detail::row_array A>
struct array_traits<A> {
  using value_type = typename A::value_type;
  static constexpr bool valid = true, flat = false, integral = std::integral<value_type> && A::extents.rank() == 0;
};

/// The rows of an array, which must outlive them; S: the shape of a row if the array is flat. Throws strata_error if the
/// elements do not make whole rows.
template <shape S, class A>
auto rows_of_array(const char* call, std::string_view name, const A& a) {
  if constexpr (data::detail::row_array<A>) {
    return a;
  } else if constexpr (array_traits<A>::flat) {
    constexpr std::size_t size{S.size()};
    const std::size_t values = std::ranges::size(a);
    if (values % size != 0)
      throw_error({call, ": ", name, " has ", values, " values: not a multiple of ", size, ", and one sample has the shape ",
                   shape_text(S)});
    using T = std::ranges::range_value_t<A>;
    return data::array<T, S>(std::shared_ptr<const T>(std::shared_ptr<void>(), std::ranges::data(a)), values / size);
  } else {
    return data::detail::rows_of(std::span<const std::ranges::range_value_t<A>>(a));
  }
}

/// Whether a loss that takes dense targets treats them as one-hot classes.
template <class Loss>
inline constexpr bool takes_classes = requires { requires Loss::one_hot; };

/// The truth of samples as the loss of a program reads it: classes, or rows of targets. Integers are targets if the loss takes
/// targets that are not classes.
template <class Program, class Y>
auto truth_of_array(const char* call, const Y& y) {
  using loss = typename Program::loss;
  constexpr bool has_targets = loss::labels == label_kind::dense;
  if constexpr (array_traits<Y>::integral && !(has_targets && !takes_classes<loss>)) {
    if constexpr (data::detail::row_array<Y>)
      return data::sparse_labels(y.values());
    else
      return data::sparse_labels(y);
  } else {
    return rows_of_array<(has_targets ? Program::network::output_shape : shape{1})>(call, "y", y);
  }
}

/// Samples of x and y. Throws strata_error if their numbers of samples differ.
template <class Program, class X, class Y>
auto samples_of_arrays(const char* call, const X& x, const Y& y) {
  auto rows = rows_of_array<Program::network::input_shape>(call, "x", x);
  auto truth = truth_of_array<Program>(call, y);
  if (rows.size() == 0) throw_error({call, ": x is empty"});
  if (rows.size() != truth.size()) throw_error({call, ": x has ", rows.size(), " samples, but y has ", truth.size()});
  return data::tensor_slices<decltype(rows), decltype(truth)>(std::move(rows), std::move(truth));
}
template <class Program, class X, class Y>
using samples_of_arrays_t = decltype(samples_of_arrays<Program>("", std::declval<const X&>(), std::declval<const Y&>()));

template <class Program, class X>
using samples_of_array_t =
    data::tensor_slices<decltype(rows_of_array<Program::network::input_shape>("", "", std::declval<const X&>())),
                        data::no_labels>;

/// The rows of a column as a graph reads them: numbers get the shape of the input or of the predictions. The array must outlive
/// them. Throws strata_error if its elements do not make whole samples.
template <class Program, class Node, class Array>
auto column_of_rows(const char* call, const column<Node, Array>& from) {
  using given = std::remove_cvref_t<Array>;
  constexpr shape extents = shape_of_end<Program, Node>;
  constexpr int output = index_in<Node>(typename Program::output_nodes{});
  const auto rows = [&]<shape S>(std::integral_constant<shape, S>) {
    return of<Node>(rows_of_array<S>(call, node_name<Node>, from.values));
  };
  if constexpr (output < 0) {
    return rows(std::integral_constant<shape, extents>{});
  } else {
    using loss = typename at_t<output, typename Program::outputs>::loss;
    constexpr bool has_targets = loss::labels == label_kind::dense;
    if constexpr (!array_traits<given>::integral || (has_targets && !takes_classes<loss>))
      return rows(std::integral_constant<shape, (has_targets ? extents : shape{1})>{});
    else if constexpr (data::detail::row_array<given>)
      return of<Node>(data::array(from.values));
    else
      return of<Node>(std::span(from.values));
  }
}
/// Samples of some columns. Throws strata_error if their numbers of samples differ.
template <class Program, class... Columns>
auto samples_of_columns(const char* call, const Columns&... columns) {
  return data::from_tensor_slices(column_of_rows<Program>(call, columns)...);
}

/// Samples with a weight each. Throws strata_error if the number of weights differs from that of the samples, or if one
/// is not finite.
template <class Samples, class Weights>
auto weighted(const char* call, Samples samples, const Weights& weights) {
  using W = std::ranges::range_value_t<Weights>;
  if (std::ranges::size(weights) != samples.size())
    throw_error({call, ": x has ", samples.size(), " samples, but sample_weight has ", std::ranges::size(weights)});
  const std::span<const W> numbers(weights);
  data::detail::refuse_infinite_weights(numbers);
  return data::detail::with_rows<data::detail::listed_weights<data::rows_t<Samples>, W>>(std::move(samples),
                                                                                         data::array<W, shape{1}>(numbers));
}

template <class Option>
inline constexpr bool is_sample_weight = false;
template <class Weights>
inline constexpr bool is_sample_weight<sample_weight<Weights>> = true;
/// Adds the weights given by an option, if there is one.
template <class Samples>
Samples with_weights(const char*, Samples samples) {
  return samples;
}
template <class Samples, class Option, class... Options>
auto with_weights(const char* call, Samples samples, const Option& option, const Options&... options) {
  if constexpr (is_sample_weight<Option>)
    return weighted(call, std::move(samples), option.values);
  else
    return with_weights(call, std::move(samples), options...);
}

/// Batches of some samples, in their order. As in Keras, a batch is not larger than the number of samples.
template <class T, class Samples>
auto batches_in_order(Samples samples, data::detail::slice part, const batch_size& size) {
  data::slice_view<Samples> some(std::move(samples), part);
  const int most = size.of(some.size());
  return data::batch_view<data::slice_view<Samples>, 0, T, false>(std::move(some), most);
}
/// Batches of the samples that this process reads, in a new order in each epoch unless `order` turns that off.
template <class T, class Samples>
auto batches_to_train(Samples samples, data::detail::slice part, const batch_size& size, const shuffle& order,
                      std::uint64_t seed) {
  data::slice_view<Samples> some(std::move(samples), part);
  const std::size_t count = some.size();
  const int most = size.of(count);
  data::shuffle_view<data::slice_view<Samples>, true> shuffled(std::move(some), order.on ? count : 1, {.seed = seed});
  return data::batch_view<decltype(shuffled), 0, T, false>(std::move(shuffled), most);
}
/// The overload for one of several processes that each train on a share of the samples.
template <class T, class Samples>
auto batches_to_train(Samples samples, data::detail::slice part, const batch_size& size, const shuffle& order, std::uint64_t seed,
                      data_share share) {
  data::slice_view<Samples> some(std::move(samples), part);
  const std::size_t count = some.size();
  data::shuffle_view<data::slice_view<Samples>, true> shuffled(std::move(some), order.on ? count : 1, {.seed = seed});
  data::shard_view<decltype(shuffled)> own(std::move(shuffled), share.of, share.index);
  const int most = size.of(own.size());
  return data::batch_view<decltype(own), 0, T, false>(std::move(own), most);
}

/// The values of x as T, whole samples, without a copy if they are T.
template <class T, shape S>
class values_of_array {
  std::vector<T> converted_;
  std::span<const T> values_;

 public:
  template <class X>
  explicit values_of_array(const X& x) {
    const auto rows = rows_of_array<S>("predict", "x", x);
    using U = typename std::remove_cvref_t<decltype(rows)>::value_type;
    const std::size_t count = rows.size() * std::size_t(S.size());
    if constexpr (std::same_as<U, T> && requires { rows.values(); }) {
      values_ = rows.values();
    } else {
      converted_.reserve(count);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const U* const row = rows.row(i);
        for (int k = 0; k < S.size(); ++k) converted_.push_back(static_cast<T>(row[k]));
      }
      values_ = converted_;
    }
  }
  values_of_array(const values_of_array&) = delete;
  values_of_array& operator=(const values_of_array&) = delete;

  std::span<const T> values() const { return values_; }
};

}  // namespace strata::detail
