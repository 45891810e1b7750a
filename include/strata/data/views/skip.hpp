// Leaves out the first samples or batches of a view.
#pragma once
#include <cstddef>
#include <strata/data/core/closure.hpp>
#include <strata/data/views/slice.hpp>
#include <utility>

namespace strata::data {

namespace detail {
struct skip_fn {
  template <class V>
  auto operator()(V view, std::size_t count) const {
    constexpr bool fits = element_view<V> || batches<V>;
    static_assert(fits, "data::skip takes a view of samples, elements or batches");
    if constexpr (fits) return sliced(std::move(view), {.first = count});
  }
  constexpr auto operator()(std::size_t count) const { return detail::partial(*this, count); }
};
}  // namespace detail

/// All but the first `count` samples, elements or batches. Category of the view; sized if the view is.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#skip
inline constexpr detail::skip_fn skip{};

}  // namespace strata::data
