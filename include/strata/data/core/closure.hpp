// Composition of stages: `train | shuffle(10'000) | batch<64>`. C++20 lacks std::ranges::range_adaptor_closure.
#pragma once
#include <concepts>
#include <cstddef>
#include <strata/base/standard_ranges.hpp>
#include <type_traits>
#include <utility>

namespace strata::data {

/// The result of a stage after its error. Every later stage and the trainer accept it silently, so that there is only one error.
struct refused_view {
  static constexpr const int* begin() { return nullptr; }
  static constexpr const int* end() { return nullptr; }
  static constexpr std::size_t size() { return 0; }
};

/// A struct of samples x and labels y, which data::csv returns and from_tensor_slices takes.
template <class D>
concept samples_and_labels = std::is_class_v<D> && !std::ranges::range<D> && requires(D d) {
  d.x;
  d.y;
};

namespace detail {
struct closure_base {};
template <class C>
concept some_closure = std::derived_from<C, closure_base>;

template <std::size_t, class T>
struct argument {
  T value;
};

/// All arguments of F except the view.
template <class Indices, class F, class... Arguments>
class bound;
template <std::size_t... I, class F, class... Arguments>
class bound<std::index_sequence<I...>, F, Arguments...> : public closure_base, argument<I, Arguments>... {
 public:
  constexpr explicit bound(Arguments... arguments) : argument<I, Arguments>{std::move(arguments)}... {}

  template <class V>
  constexpr auto operator()(V&& view) const {
    return F{}(std::forward<V>(view), static_cast<const argument<I, Arguments>&>(*this).value...);
  }
  template <class V>
    requires std::ranges::range<std::remove_cvref_t<V>>  // const views, too: they are copied
  friend constexpr auto operator|(V&& view, const bound& f) {
    // Not in a separate function, which would add a note to each compile error.
    if constexpr (std::same_as<std::remove_cvref_t<V>, refused_view>)
      return refused_view{};
    else if constexpr (std::is_void_v<decltype(F{}(std::forward<V>(view),
                                                   static_cast<const argument<I, Arguments>&>(f).value...))>)
      return refused_view{};
    else
      return F{}(std::forward<V>(view), static_cast<const argument<I, Arguments>&>(f).value...);
  }
};
}  // namespace detail

/// The right operand of `|`: the function object F and its arguments except the view. `view | f` and `f(view)` are F{}(view,
/// arguments...); `f | g` is f, then g. cf. https://en.cppreference.com/w/cpp/ranges/range_adaptor_closure
template <class F, class... Arguments>
class closure : public detail::bound<std::index_sequence_for<Arguments...>, F, Arguments...> {
 public:
  using detail::bound<std::index_sequence_for<Arguments...>, F, Arguments...>::bound;
};
/// A closure without arguments: F may also be called with arguments, which makes another closure, as in `cache` and
/// `cache("file")`. `cache()` is `cache`.
template <class F>
class closure<F> : public detail::closure_base, public F {
 public:
  using F::operator();
  constexpr closure operator()() const
    requires(!std::invocable<const F&>)
  {
    return *this;
  }
  template <class V>
    requires std::ranges::range<std::remove_cvref_t<V>>
  friend constexpr auto operator|(V&& view, const closure&) {
    if constexpr (std::same_as<std::remove_cvref_t<V>, refused_view>)
      return refused_view{};
    else if constexpr (std::is_void_v<decltype(F{}(std::forward<V>(view)))>)
      return refused_view{};
    else
      return F{}(std::forward<V>(view));
  }
};

namespace detail {
/// `partial(f, a, b)(view)` is `f(view, a, b)`.
template <class F, class... Arguments>
constexpr auto partial(F, Arguments... arguments) {
  return closure<F, Arguments...>(std::move(arguments)...);
}

struct composed_fn {
  template <class V, some_closure F, some_closure G>
  constexpr auto operator()(V&& view, const F& f, const G& g) const {
    return std::forward<V>(view) | f | g;
  }
};
}  // namespace detail

template <detail::some_closure F, detail::some_closure G>
constexpr auto operator|(F f, G g) {
  return detail::partial(detail::composed_fn{}, std::move(f), std::move(g));
}

// A function without parameters that returns a closure stands for it, as in `shuffle(10) | batch<64>`.
template <class V, class F>
  requires std::ranges::range<std::remove_cvref_t<V>>
constexpr auto operator|(V&& view, closure<F> (*)()) {
  if constexpr (std::same_as<std::remove_cvref_t<V>, refused_view>)
    return refused_view{};
  else if constexpr (std::is_void_v<decltype(F{}(std::forward<V>(view)))>)
    return refused_view{};
  else
    return F{}(std::forward<V>(view));
}
template <detail::some_closure F, detail::some_closure G>
constexpr auto operator|(F f, G (*named)()) {
  return std::move(f) | named();
}

// Arrays are not views.
template <class D>
  requires samples_and_labels<std::remove_cvref_t<D>>
constexpr refused_view operator|(D&&, const detail::some_closure auto&) {
  constexpr bool is_a_view = std::ranges::range<D>;
  static_assert(is_a_view, "data::from_tensor_slices makes a view of x and y: put it around them, before the first |");
  return {};
}
template <class D, class F>
  requires samples_and_labels<std::remove_cvref_t<D>>
constexpr refused_view operator|(D&& arrays, closure<F> (*)()) {
  return arrays | closure<F>{};
}

}  // namespace strata::data
