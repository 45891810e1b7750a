// Samples in memory, with or without labels.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/standard_function.hpp>
#include <strata/base/standard_ranges.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/column.hpp>
#include <strata/data/core/indexed_view.hpp>
#include <strata/data/core/named_sample.hpp>
#include <strata/data/core/rows_view.hpp>
#include <strata/data/core/sample_view.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

struct no_labels {};

/// One class index per sample.
class sparse_labels {
 public:
  /// Throws strata_error if a label does not fit into 32 bits.
  template <std::ranges::input_range R>
    requires std::integral<std::ranges::range_value_t<R>>
  explicit sparse_labels(R&& labels) {
    std::vector<std::int32_t> values;
    if constexpr (std::ranges::sized_range<R>) values.reserve(static_cast<std::size_t>(std::ranges::size(labels)));
    for (const auto label : labels) {
      if (!std::in_range<std::int32_t>(+label))
        throw_error({"sparse labels: label ", +label, " of sample ", values.size(), " does not fit into 32 bits"});
      values.push_back(static_cast<std::int32_t>(label));
    }
    values_ = std::make_shared<const std::vector<std::int32_t>>(std::move(values));
  }

  std::size_t size() const { return values_->size(); }
  std::int32_t operator[](std::size_t i) const { return (*values_)[i]; }
  std::span<const std::int32_t> values() const { return *values_; }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> values_;
};

namespace detail {
template <class Labels>
inline constexpr label_kind kind_of = label_kind::dense;
template <>
inline constexpr label_kind kind_of<no_labels> = label_kind::none;
template <>
inline constexpr label_kind kind_of<sparse_labels> = label_kind::sparse;

template <class Labels>
inline constexpr shape target_of = Labels::extents;
template <>
inline constexpr shape target_of<no_labels>{};
template <>
inline constexpr shape target_of<sparse_labels>{};

template <class Labels>
struct targets_of {};
template <class Labels>
  requires requires { typename Labels::value_type; }
struct targets_of<Labels> {
  using target_value_type = typename Labels::value_type;
};

/// Converts a row of an array, and prefetches the one that is converted a little later.
template <int Size, class U, class T, class Then>
inline void convert_row(const U* from, const U* coming, T* to, Then then) {
  // Prefetches two cache lines at a time: the whole next row at once would fill the miss queue and stall the stores.
  constexpr int line = 64 / int{sizeof(U)}, step = 2 * line;
  int k = 0;
  for (; k + step <= Size; k += step) {
    __builtin_prefetch(coming + k);
    __builtin_prefetch(coming + k + line);
    convert(from + k, step, to + k, then);
  }
  for (int j = k; j < Size; j += line) __builtin_prefetch(coming + j);
  __builtin_prefetch(coming + Size - 1);
  convert(from + k, Size - k, to + k, then);
}
template <class Labels>
inline constexpr bool any_thread_may_read = Labels::properties.any_thread_may_write;
template <>
inline constexpr bool any_thread_may_read<no_labels> = true;
template <>
inline constexpr bool any_thread_may_read<sparse_labels> = true;

/// Contiguous rows of elements: array, sparse_labels.
template <class X>
concept lies_in_memory = requires(const X& x) {
  { *x.values().data() } -> std::convertible_to<double>;
  requires storable_number<std::remove_cvref_t<decltype(*x.values().data())>>;
};
template <class X>
stored_samples::column add_column(stored_samples& to, const X& rows) {
  const auto values = rows.values();
  const std::size_t bytes = values.size_bytes();
  to.blocks[to.block_count] = {reinterpret_cast<const std::byte*>(values.data()), bytes};
  return {.block = to.block_count++,
          .stride = bytes / to.count,
          .type = number_type_of<std::remove_cv_t<typename decltype(values)::element_type>>};
}

/// The rows of from_tensor_slices: an array of samples with their labels.
template <class X, class Labels>
class tensor_rows : public targets_of<Labels> {
 public:
  using value_type = typename X::value_type;
  static constexpr shape sample_shape = X::extents;
  static constexpr label_kind labels = kind_of<Labels>;
  static constexpr shape target_shape = target_of<Labels>;
  static constexpr row_properties properties{.any_thread_may_write =
                                                 X::properties.any_thread_may_write && any_thread_may_read<Labels>};

  tensor_rows(X x, Labels y) : x_(std::move(x)), y_(std::move(y)) {}
  tensor_rows(const tensor_rows&) = default;
  tensor_rows(tensor_rows&&) = default;
  tensor_rows& operator=(const tensor_rows&) = default;
  tensor_rows& operator=(tensor_rows&&) = default;
  [[gnu::noinline]] ~tensor_rows() = default;  // otherwise its code is repeated for each destroyed view

  std::size_t size() const { return x_.size(); }
  std::uint64_t checksum() const { return checksum_of(*this, properties.any_thread_may_write ? bytes_of_cheap_rows : 0); }

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, sample_place<T> to, Then then) const {
    convert_row<sample_shape.size()>(x_.row(i.row), x_.row(ahead.row), to.x, then);
    if constexpr (labels == label_kind::sparse) *to.label = label(i);
    if constexpr (labels == label_kind::dense) convert(y_.row(i.row), target_shape.size(), to.target, std::identity{});
  }
  std::int32_t label(sample_index i) const
    requires(labels == label_kind::sparse)
  {
    return y_[i.row];
  }
  const value_type* direct(sample_index i) const { return x_.row(i.row); }

  std::optional<stored_samples> stored() const
    requires(lies_in_memory<X> && (labels == label_kind::none || lies_in_memory<Labels>))
  {
    stored_samples all{.count = size()};
    all.x = add_column(all, x_);
    if constexpr (labels != label_kind::none) all.truth = add_column(all, y_);
    all.truths = labels;
    return all;
  }

  const X& x() const { return x_; }
  const Labels& y() const { return y_; }

 private:
  X x_;
  [[no_unique_address]] Labels y_;
};
/// A column of an array or of sparse_labels.
template <class Node, class X>
struct column_of_array {
  using shown = column<Node, tensor<const typename X::value_type, X::extents>>;
  static shown at(const X& rows, std::size_t i) { return {{rows.row(i)}}; }
  template <class T>
  static void write(const X& rows, std::size_t i, std::size_t ahead, T* to) {
    convert_row<X::extents.size()>(rows.row(i), rows.row(ahead), to, std::identity{});
  }
};
template <class Node>
struct column_of_array<Node, sparse_labels> {
  using shown = column<Node, std::int32_t>;
  static shown at(const sparse_labels& labels, std::size_t i) { return {labels[i]}; }
  static void write(const sparse_labels& labels, std::size_t i, std::size_t, std::int32_t* to) { *to = labels[i]; }
};

/// The rows of from_tensor_slices with names.
template <class... Columns>
class column_rows;
template <class... Node, class... Values>
class column_rows<column<Node, Values>...>
    : public elements_of<column_rows<column<Node, Values>...>, named_sample<typename column_of_array<Node, Values>::shown...>> {
 public:
  static constexpr row_properties properties{.any_thread_may_write = (any_thread_may_read<Values> && ...)};

  explicit column_rows(column<Node, Values>... columns) : columns_(std::move(columns)...) {}

  std::size_t size() const { return std::get<0>(columns_).values.size(); }
  std::uint64_t checksum() const { return checksum_of(*this, properties.any_thread_may_write ? bytes_of_cheap_rows : 0); }
  typename column_rows::element get(sample_index i) const {
    return {column_of_array<Node, Values>::at(values_of<Node, Values>(), i.row)...};
  }
  template <class Place>
  void write(sample_index i, sample_index ahead, const Place& to, std::identity) const {
    (column_of_array<Node, Values>::write(values_of<Node, Values>(), i.row, ahead.row, data::get<Node>(to)), ...);
  }

 private:
  template <class N, class V>
  const V& values_of() const {
    return std::get<column<N, V>>(columns_).values;
  }

  std::tuple<column<Node, Values>...> columns_;
};
}  // namespace detail

/// Samples with names in memory. Random access and sized. Copies share the samples.
template <class... Columns>
class column_slices : public indexed_view<detail::column_rows<Columns...>> {
 public:
  /// Throws strata_error, naming the node, if the columns have different numbers of rows, and if there are none or more than
  /// 2^32 - 1.
  explicit column_slices(Columns... columns)
      : indexed_view<detail::column_rows<Columns...>>(
            "from_tensor_slices", (refuse_other_sizes(columns...), detail::column_rows<Columns...>(std::move(columns)...))) {}

 private:
  template <class First>
  static void refuse_other_sizes(const First& first, const auto&... others) {
    (refuse_another_size(first, others), ...);
  }
  template <class First, class Other>
  static void refuse_another_size(const First& first, const Other& other) {
    if (first.values.size() != other.values.size())
      throw_error({"from_tensor_slices: ", first.values.size(), " samples of ", strata::detail::node_name<typename First::node>,
                   ", but ", other.values.size(), " of ", strata::detail::node_name<typename Other::node>});
  }
};

/// Samples in memory. Random access and sized. Copies share the samples.
template <class X, class Labels>
class tensor_slices : public indexed_view<detail::tensor_rows<X, Labels>> {
 public:
  /// Throws strata_error if there are no samples, more than 2^32 - 1, or a different number of labels.
  tensor_slices(X x, Labels y)
      : indexed_view<detail::tensor_rows<X, Labels>>("from_tensor_slices",
                                                     detail::tensor_rows<X, Labels>(std::move(x), std::move(y))) {
    const std::size_t n = this->size();
    if constexpr (detail::kind_of<Labels> != label_kind::none)
      if (this->rows().y().size() != n)
        throw_error({"from_tensor_slices: ", n, " samples, but ", this->rows().y().size(), " labels"});
  }
};

namespace detail {
/// Rows of elements in memory: array, mapped_array.
template <class X>
concept row_array = std::copyable<X> && requires(const X& x, std::size_t i) {
  { X::extents } -> std::convertible_to<shape>;
  { X::properties } -> std::convertible_to<row_properties>;
  { x.row(i) } -> std::same_as<const typename X::value_type*>;
  { x.size() } -> std::convertible_to<std::size_t>;
};

template <class R>
concept range_of_numbers = std::ranges::input_range<R> && numbers<std::ranges::range_value_t<R>>::valid;

/// A vector or span of numbers, or of arrays of numbers, as rows, without a copy.
template <class E>
  requires numbers<E>::valid
auto rows_of(std::vector<E> values) {
  using row = numbers<E>;
  const auto owner = std::make_shared<const std::vector<E>>(std::move(values));
  const auto* first = owner->empty() ? nullptr : row::data(owner->front());
  return array<typename row::value_type, row::extents>({owner, first}, owner->size());
}
template <class E>
  requires numbers<E>::valid
auto rows_of(std::span<const E> values) {
  using row = numbers<E>;
  const auto* first = values.empty() ? nullptr : row::data(values.front());
  return array<typename row::value_type, row::extents>({std::shared_ptr<void>(), first}, values.size());
}

template <class X>
auto samples_of(X x) {
  if constexpr (row_array<X>) {
    return x;
  } else {
    constexpr bool fits = requires { rows_of(std::move(x)); } || range_of_numbers<X>;
    static_assert(
        fits,
        "data::from_tensor_slices takes a data::array, or a vector, span or range of numbers or std::arrays; of rows that "
        "are vectors, make one flat vector and data::array<float, shape{numbers of a row}>(flat)");
    if constexpr (requires { rows_of(std::move(x)); })
      return rows_of(std::move(x));
    else if constexpr (fits && requires { rows_of(std::span<const typename X::value_type>(x)); } &&
                       std::ranges::borrowed_range<X>)
      return rows_of(std::span<const typename X::value_type>(x));
    else if constexpr (fits)
      return rows_of(std::vector(std::ranges::begin(x), std::ranges::end(x)));
  }
}
template <class Y>
auto labels_of(Y y) {
  if constexpr (row_array<Y>) {
    constexpr bool classes = std::integral<typename Y::value_type> && Y::extents.rank() == 0;
    if constexpr (classes && requires { y.values(); })
      return sparse_labels(y.values());
    else
      return y;
  } else {
    constexpr bool fits = range_of_numbers<Y>;
    static_assert(fits, "labels are a range of integers (sparse), or a data::array or a range of numbers or std::arrays (dense)");
    if constexpr (fits) {
      if constexpr (std::integral<std::ranges::range_value_t<Y>>)
        return sparse_labels(y);
      else
        return samples_of(std::move(y));
    }
  }
}

/// Converts to any type; used to count the members of an aggregate.
struct any_member {
  template <class T>
  operator T() const;
};
template <class S>
concept pair_of_members = std::is_aggregate_v<S> && !std::ranges::range<S> && requires { S{any_member{}, any_member{}}; } &&
                          !requires { S{any_member{}, any_member{}, any_member{}}; };

struct from_tensor_slices_fn {
  template <class... Node, class... Values>
    requires(sizeof...(Node) > 0)
  auto operator()(column<Node, Values>... columns) const {
    constexpr bool distinct = strata::detail::are_distinct<Node...>;
    constexpr bool fit = ((row_array<std::remove_cvref_t<Values>> || range_of_numbers<std::remove_cvref_t<Values>>) && ...);
    static_assert(distinct, "data::from_tensor_slices has a node twice");
    static_assert(
        fit,
        "a column of data::from_tensor_slices is a data::array, or a vector, span or range of numbers or std::arrays; of "
        "rows that are vectors, make one flat vector and data::array<float, shape{numbers of a row}>(flat)");
    if constexpr (distinct && fit)
      return of_columns(named_column<Node, std::remove_cvref_t<Values>>(std::forward<Values>(columns.values))...);
    else
      return refused_view{};
  }
  template <class X>
    requires(!strata::detail::is_column<X>)
  auto operator()(X x) const {
    if constexpr (requires { x.first, x.second; }) {
      return (*this)(std::move(x.first), std::move(x.second));
    } else if constexpr (samples_and_labels<X>) {
      return (*this)(std::move(x.x), std::move(x.y));
    } else if constexpr (pair_of_members<X>) {
      auto& [first, second] = x;
      return (*this)(std::move(first), std::move(second));
    } else if constexpr (std::is_void_v<decltype(samples_of(std::move(x)))>) {
      return refused_view{};
    } else {
      auto rows = samples_of(std::move(x));
      return tensor_slices<decltype(rows), no_labels>(std::move(rows), {});
    }
  }
  template <class X, class Y>
    requires(!strata::detail::is_column<X> && !strata::detail::is_column<Y>)
  auto operator()(X x, Y y) const {
    if constexpr (std::is_void_v<decltype(samples_of(std::move(x)))>) {
      return refused_view{};
    } else if constexpr (std::is_void_v<decltype(labels_of(std::move(y)))>) {
      return refused_view{};
    } else {
      auto rows = samples_of(std::move(x));
      auto labels = labels_of(std::move(y));
      return tensor_slices<decltype(rows), decltype(labels)>(std::move(rows), std::move(labels));
    }
  }

 private:
  template <class Node, class Values>
  static auto named_column(Values values) {
    if constexpr (strata::detail::names_input<Node>)
      return column<Node, decltype(samples_of(std::move(values)))>{samples_of(std::move(values))};
    else
      return column<Node, decltype(labels_of(std::move(values)))>{labels_of(std::move(values))};
  }
  template <class... Columns>
  static auto of_columns(Columns... columns) {
    return column_slices<Columns...>(std::move(columns)...);
  }
};
}  // namespace detail

/// in: samples: an array (samples, S...), or a vector, span or range of numbers (of shape (1)) or of std::arrays (of arrays ...);
///     and labels: a range of integers (sparse; copied), an array or a range of numbers or std::arrays (dense), or nothing. An
///     array of integers of shape () is sparse, too. A pair, a struct of two such members, or one with members x and y (as of
///     data::csv), is samples and labels. Vectors are moved in, spans borrowed. Borrowed numbers must not change while a fit
///     reads them; a GPU that keeps them sees a change in the next fit.
/// out: a view of sample indices, random access and sized.
/// Throws strata_error if there are no samples or if the numbers of samples and labels differ.
///
/// `from_tensor_slices(of<image>(images), of<tags>(words), of<kind>(kinds))`: samples with names, for a graph with several inputs
/// or outputs. Integers for an output are classes; an input takes any numbers. Throws strata_error, naming the nodes, if their
/// numbers of samples differ.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#from_tensor_slices
inline constexpr detail::from_tensor_slices_fn from_tensor_slices{};

}  // namespace strata::data

template <class X, class Labels>
inline constexpr bool std::ranges::enable_borrowed_range<strata::data::tensor_slices<X, Labels>> = true;
template <class... Columns>
inline constexpr bool std::ranges::enable_borrowed_range<strata::data::column_slices<Columns...>> = true;
