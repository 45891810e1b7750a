// The contract of all stages before `batch`: they move sample indices; rows() maps an index to its sample.
#pragma once
#include <concepts>
#include <cstddef>
#include <strata/base/standard_ranges.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/rows.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::data {

/// Compile-time properties of a view that stages need, as row_properties for rows.
struct view_properties {
  bool same_on_all_workers = true;  // every worker sees the elements in the same order
};

template <class V>
using rows_t = std::remove_cvref_t<decltype(std::declval<const V&>().rows())>;

/// A view of the indices of elements or samples. begin() starts the next epoch; set_epoch sets its number. Optional: base(), the
/// view before it; size(); order(), see detail::order_of; and shards(), the number of workers that share its base.
template <class V>
concept element_view = std::ranges::view<V> && std::ranges::input_range<V> &&
                       std::convertible_to<std::ranges::range_reference_t<V>, sample_index> && requires(V& v, int epoch) {
                         { V::properties } -> std::convertible_to<view_properties>;
                         v.set_epoch(epoch);
                         requires row_source<rows_t<V>> || element_source<rows_t<V>> || named_source<rows_t<V>>;
                       };

/// A view of the indices of samples: what `batch` takes, besides a named_view.
template <class V>
concept sample_view = element_view<V> && row_source<rows_t<V>>;

/// A view of the indices of samples with names.
template <class V>
concept named_view = element_view<V> && named_source<rows_t<V>>;

namespace detail {
/// Whether a view of indices has each of the other required members. For messages.
template <class V>
inline constexpr bool is_index_view = false;
template <std::ranges::view V>
  requires std::ranges::input_range<V>
inline constexpr bool is_index_view<V> = std::convertible_to<std::ranges::range_reference_t<V>, sample_index>;
template <class V>
inline constexpr bool sets_epoch_of_view = requires(V& v) { v.set_epoch(1); };
template <class V>
inline constexpr bool has_view_properties = requires {
  { V::properties } -> std::convertible_to<view_properties>;
};
template <class V>
inline constexpr bool has_rows_of_view = requires(const V& v) { v.rows(); };

// For static_assert: a failed concept would print all requirements, in 20 lines.
template <class V>
inline constexpr bool is_element_view = element_view<V>;
template <class V>
inline constexpr bool is_sample_view = sample_view<V>;
template <class V>
inline constexpr bool has_names = named_view<V>;

/// For stages whose samples differ from those that they read, so that weights would be lost.
template <class V>
inline constexpr bool has_no_weights = true;
template <element_view V>
inline constexpr bool has_no_weights<V> = !has_weight<rows_t<V>>;

/// The number of workers that share the samples of a view.
template <class V>
std::size_t shards_of(const V& view) {
  std::size_t shards = 1;
  if constexpr (requires { view.shards(); }) shards = view.shards();
  if constexpr (requires { view.base(); }) shards *= shards_of(view.base());
  return shards;
}
/// Which samples come in which order, on any number of workers: "from_tensor_slices(60000 samples) | shuffle(10000, seed 7)".
template <class V>
std::string order_of(const V& view) {
  std::string order;
  if constexpr (requires { view.base(); }) order = order_of(view.base());
  if constexpr (requires { view.order(); }) order += strata::detail::text_of({order.empty() ? "" : " | ", view.order()});
  return order;
}
/// Whether this view and all before it have the same order on every worker.
template <class V>
constexpr bool same_on_all_workers() {
  bool same = true;
  if constexpr (element_view<V>) same = view_properties(V::properties).same_on_all_workers;
  if constexpr (requires(const V& view) { view.base(); })
    same = same && same_on_all_workers<std::remove_cvref_t<decltype(std::declval<const V&>().base())>>();
  return same;
}
/// Whether a stage up to this view draws random numbers, as augmentation does; the order of the samples does not matter.
template <class V>
constexpr bool is_random() {
  bool random = false;
  if constexpr (element_view<V>) random = row_properties(rows_t<V>::properties).is_random;
  if constexpr (requires(const V& view) { view.base(); })
    random = random || is_random<std::remove_cvref_t<decltype(std::declval<const V&>().base())>>();
  return random;
}
/// Whether a view up to this one reads a stream, a copy of which would read again from the start, which is impossible for a pipe.
template <class V>
constexpr bool reads_stream() {
  bool reads = false;
  if constexpr (element_view<V>) reads = releasable<rows_t<V>>;
  if constexpr (requires(const V& view) { view.base(); })
    reads = reads || reads_stream<std::remove_cvref_t<decltype(std::declval<const V&>().base())>>();
  return reads;
}
}  // namespace detail

}  // namespace strata::data
