// Samples that lie in memory, with or without labels: where every pipeline starts.
#pragma once
#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <ranges>
#include <strata/base/error.hpp>
#include <strata/data/array.hpp>
#include <strata/data/sample_view.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::data {

struct no_labels {};

/// One class number per sample.
class sparse_labels {
 public:
  /// Throws strata::error if a label does not fit into 32 bits.
  template <std::ranges::input_range R>
    requires std::integral<std::ranges::range_value_t<R>>
  explicit sparse_labels(R&& labels) {
    std::vector<std::int32_t> values;
    if constexpr (std::ranges::sized_range<R>) values.reserve(static_cast<std::size_t>(std::ranges::size(labels)));
    for (const auto label : labels) {
      if (!std::in_range<std::int32_t>(+label))
        throw error("sparse labels: label " + std::to_string(label) + " of sample " + std::to_string(values.size()) +
                    " does not fit into 32 bits");
      values.push_back(static_cast<std::int32_t>(label));
    }
    values_ = std::make_shared<const std::vector<std::int32_t>>(std::move(values));
  }

  std::size_t size() const { return values_->size(); }
  std::int32_t operator[](std::size_t i) const { return (*values_)[i]; }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> values_;
};

namespace detail {
/// The iterator of 0, 1, 2 ... (clang 14 cannot read libstdc++'s iota_view).
struct counter {
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = sample_index;
  using difference_type = std::ptrdiff_t;

  sample_index at = 0;

  sample_index operator*() const { return at; }
  sample_index operator[](difference_type n) const { return *(*this + n); }
  counter& operator++() { return *this += 1; }
  counter& operator--() { return *this += -1; }
  counter operator++(int) { return std::exchange(*this, *this + 1); }
  counter operator--(int) { return std::exchange(*this, *this - 1); }
  counter& operator+=(difference_type n) {
    at = static_cast<sample_index>(at + n);
    return *this;
  }
  counter& operator-=(difference_type n) { return *this += -n; }
  friend counter operator+(counter i, difference_type n) { return i += n; }
  friend counter operator+(difference_type n, counter i) { return i += n; }
  friend counter operator-(counter i, difference_type n) { return i -= n; }
  friend difference_type operator-(counter a, counter b) { return difference_type{a.at} - difference_type{b.at}; }
  friend auto operator<=>(const counter&, const counter&) = default;
};

template <class Labels>
inline constexpr label_kind kind_of = label_kind::dense;
template <>
inline constexpr label_kind kind_of<no_labels> = label_kind::none;
template <>
inline constexpr label_kind kind_of<sparse_labels> = label_kind::sparse;

template <class Labels>
inline constexpr shape target_of{};
template <class T, shape S>
inline constexpr shape target_of<array<T, S>> = S;

template <class T>
inline constexpr bool is_array = false;
template <class T, shape S>
inline constexpr bool is_array<array<T, S>> = true;

/// A function of its own, since clang believes __restrict of parameters only.
template <class U, class T, class Then>
inline void convert(const U* __restrict from, int n, T* __restrict to, Then then) {
  for (int i = 0; i < n; ++i) to[i] = then(static_cast<T>(from[i]));
}
}  // namespace detail

/// The rows of from_tensor_slices: an array of samples, and what comes with them.
template <class X, class Labels>
class tensor_rows {
 public:
  static constexpr shape sample_shape = X::extents;
  static constexpr label_kind labels = detail::kind_of<Labels>;
  static constexpr shape target_shape = detail::target_of<Labels>;

  tensor_rows(X x, Labels y) : x_(std::move(x)), y_(std::move(y)) {}

  std::size_t size() const { return x_.size(); }

  template <class T, class Then>
  void write(sample_index i, sample_index ahead, T* x, Then then) const {
    using U = typename X::value_type;
    const U *from = x_.row(i), *coming = x_.row(ahead);
    // Two cache lines at a time: all of the coming row at once would fill the queue of misses and stall the stores.
    constexpr int size = sample_shape.size(), line = 64 / int{sizeof(U)}, step = 2 * line;
    int k = 0;
    for (; k + step <= size; k += step) {
      __builtin_prefetch(coming + k);
      __builtin_prefetch(coming + k + line);
      detail::convert(from + k, step, x + k, then);
    }
    for (int j = k; j < size; j += line) __builtin_prefetch(coming + j);
    __builtin_prefetch(coming + size - 1);
    detail::convert(from + k, size - k, x + k, then);
  }
  std::int32_t label(sample_index i) const
    requires(labels == label_kind::sparse)
  {
    return y_[i];
  }
  template <class T>
  void write_target(sample_index i, T* out) const
    requires(labels == label_kind::dense)
  {
    std::transform(y_.row(i), y_.row(i) + target_shape.size(), out, [](auto v) { return static_cast<T>(v); });
  }

  const X& x() const { return x_; }
  const Labels& y() const { return y_; }

 private:
  X x_;
  [[no_unique_address]] Labels y_;
};

/// The numbers 0 ... size - 1 of samples in memory. Random access; copying shares the samples.
template <class X, class Labels>
class tensor_slices : public std::ranges::view_base {
 public:
  /// Throws strata::error if there are no samples, more than sample_index can number, or another number of labels.
  tensor_slices(X x, Labels y) : rows_(std::move(x), std::move(y)) {
    const std::size_t n = rows_.size();
    if (n == 0) throw error("from_tensor_slices: the data set is empty");
    if (n > std::numeric_limits<sample_index>::max())
      throw error("from_tensor_slices: " + std::to_string(n) + " samples are more than a sample_index can number");
    if constexpr (detail::kind_of<Labels> != label_kind::none)
      if (rows_.y().size() != n)
        throw error("from_tensor_slices: " + std::to_string(n) + " samples, but " + std::to_string(rows_.y().size()) + " labels");
  }

  detail::counter begin() const { return {}; }
  detail::counter end() const { return {static_cast<sample_index>(rows_.size())}; }
  std::size_t size() const { return rows_.size(); }
  const tensor_rows<X, Labels>& rows() const { return rows_; }
  void set_epoch(int) {}  // every epoch is the same

 private:
  tensor_rows<X, Labels> rows_;
};

namespace detail {
struct from_tensor_slices_fn {
  template <class T, shape S>
  auto operator()(array<T, S> x) const {
    return tensor_slices<array<T, S>, no_labels>(std::move(x), {});
  }
  template <class T, shape S, class U, shape Target>
  auto operator()(array<T, S> x, array<U, Target> y) const {
    return tensor_slices<array<T, S>, array<U, Target>>(std::move(x), std::move(y));
  }
  template <class T, shape S, std::ranges::input_range Labels>
    requires(!is_array<std::remove_cvref_t<Labels>>)
  auto operator()(array<T, S> x, Labels&& y) const {
    constexpr bool integers = std::integral<std::ranges::range_value_t<Labels>>;
    static_assert(integers, "labels are a range of integers (sparse) or a data::array of numbers (dense)");
    if constexpr (integers) return tensor_slices<array<T, S>, sparse_labels>(std::move(x), sparse_labels(y));
  }
};
}  // namespace detail

/// in: array (samples, S...), and labels: a range of integers (sparse; copied), an array (samples, Target...) (dense), or nothing
/// out: a view of sample numbers, random access and sized.
/// Throws strata::error if there are no samples or if the numbers of samples and labels differ.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#from_tensor_slices
inline constexpr detail::from_tensor_slices_fn from_tensor_slices{};

}  // namespace strata::data

template <class X, class Labels>
inline constexpr bool std::ranges::enable_borrowed_range<strata::data::tensor_slices<X, Labels>> = true;
