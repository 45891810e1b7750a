// A range of elements for each element, one range after the other.
#pragma once
#include <ranges>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/stage_stream.hpp>
#include <strata/data/views/inner_reader.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/interleave_cycle.hpp>
#include <utility>

namespace strata::data {

namespace detail {
struct flat_map_fn {
  template <std::ranges::range V, class F>
  auto operator()(V view, F f) const {
    constexpr bool is_view = element_view<V>;
    static_assert(is_view, "data::flat_map takes a view of samples or elements: put it before batch");
    if constexpr (is_view) {
      constexpr bool fits = makes_ranges<F, V>;
      static_assert(fits,
                    "the function of data::flat_map takes an element, or x and y of samples with labels, and returns a "
                    "range of elements; it is called as const");
      constexpr bool keeps_weights = has_no_weights<V> && makes_no_weights<F, V>;
      static_assert(keeps_weights, "data::flat_map would lose the weights: put data::sample_weight after it");
      if constexpr (fits && keeps_weights)
        return stage_stream(
            interleave_source<V, F>("flat_map", std::move(view), std::move(f), interleave_cycle({.cycle_length = 1})));
    }
  }
  template <class F>
  constexpr auto operator()(F f) const {
    return detail::partial(*this, std::move(f));
  }
};
}  // namespace detail

/// `from_range(files) | flat_map([](const path& file) { return lines_of(file); })`: f(element), f(x) or f(x, y) returns a range
/// of elements, a view of samples, or a function that returns the next element as std::optional. The ranges are read one after
/// the other. They must not refer to the element, which is gone when f returns. Input range without a size. Exceptions of f and
/// of its ranges arrive as strata_error that names the element.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#flat_map
inline constexpr detail::flat_map_fn flat_map{};

}  // namespace strata::data
