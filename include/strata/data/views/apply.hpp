// A function of a view as a stage.
#pragma once
#include <ranges>
#include <strata/data/core/closure.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

namespace detail {
struct apply_fn {
  template <class V, class F>
    requires std::ranges::range<std::remove_cvref_t<V>>
  constexpr auto operator()(V&& view, const F& f) const {
    constexpr bool fits = std::is_invocable_v<const F&, V>;
    static_assert(fits, "the function of data::apply takes the view before it; it is called as const");
    if constexpr (fits) {
      constexpr bool returns_one = !std::is_void_v<std::invoke_result_t<const F&, V>>;
      static_assert(returns_one, "the function of data::apply returns a view, but this one returns nothing");
      return f(std::forward<V>(view));
    }
  }
  template <class F>
  constexpr auto operator()(F f) const {
    return detail::partial(*this, std::move(f));
  }
};
}  // namespace detail

/// `view | apply(f)` is `f(view)`: names a sequence of stages, which may depend on the view.
/// https://www.tensorflow.org/api_docs/python/tf/data/Dataset#apply
inline constexpr detail::apply_fn apply{};

}  // namespace strata::data
