// Reads the results of the function of flat_map or interleave.
#pragma once
#include <concepts>
#include <optional>
#include <ranges>
#include <strata/data/core/element.hpp>
#include <strata/data/core/sample.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/element_reader.hpp>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

/// A range, or a function that returns the next element as std::optional.
template <class R>
class inner_reader : public range_reader<R> {
 public:
  using element = typename kept_of<R>::type;

  inner_reader(R range, int) : range_reader<R>(std::move(range)) {}
};
/// A view of samples or elements, in one epoch.
template <element_view R>
class inner_reader<R> {
 public:
  using element = kept_t<R>;

  inner_reader(R view, int epoch) : view_(std::move(view)) { reader_.start(view_, epoch); }
  inner_reader(const inner_reader&) = delete;
  inner_reader& operator=(const inner_reader&) = delete;

  bool next(element& e) {
    return reader_.next(view_, [&](const element_t<rows_t<R>>& shown) { detail::keep(shown, e); });
  }

 private:
  R view_;
  element_reader<R> reader_;
};

template <class R>
concept inner_range = element_view<R> || std::ranges::input_range<R> || requires(R& next) {
  typename std::remove_cvref_t<decltype(next())>::value_type;
  { *next() } -> std::convertible_to<typename std::remove_cvref_t<decltype(next())>::value_type>;
};

/// F makes a range of each element of V.
template <class F, class V>
concept makes_ranges = takes<const F, element_t<rows_t<V>>> && inner_range<mapped_t<F, rows_t<V>>>;

/// Whether the ranges of F have no sample weights. These would be lost, as would those of V.
template <class F, class V>
inline constexpr bool makes_no_weights = true;
template <class F, class V>
  requires makes_ranges<F, V>
inline constexpr bool makes_no_weights<F, V> = has_no_weights<mapped_t<F, rows_t<V>>>;

}  // namespace strata::data::detail
