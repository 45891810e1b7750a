// The first samples or batches of a view.
#pragma once
#include <cstddef>
#include <strata/data/core/closure.hpp>
#include <strata/data/views/slice.hpp>
#include <utility>

namespace strata::data {

namespace detail {
struct take_fn {
  template <class V>
  auto operator()(V view, std::size_t count) const {
    constexpr bool fits = element_view<V> || batches<V>;
    static_assert(fits, "data::take takes a view of samples, elements or batches");
    if constexpr (fits) return sliced(std::move(view), {.count = count});
  }
  constexpr auto operator()(std::size_t count) const { return detail::partial(*this, count); }
};
}  // namespace detail

/// At most `count` samples, elements or batches, then the end. After shuffle: other samples in each epoch. Category of the view;
/// sized if the view is. https://www.tensorflow.org/api_docs/python/tf/data/Dataset#take
inline constexpr detail::take_fn take{};

}  // namespace strata::data
