// Access to an element in a stage, and calls of a user's function with it.
#pragma once
#include <cstdint>
#include <exception>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/core/scratch.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

/// The type that visit passes: the element, or a sample as tensors.
template <class Rows>
struct visited {
  using x = tensor<const shown_value_t<Rows>, Rows::sample_shape>;
  using y =
      std::conditional_t<Rows::labels == label_kind::sparse, std::int32_t, tensor<const shown_value_t<Rows>, Rows::target_shape>>;
  using type = std::conditional_t<Rows::labels == label_kind::none, x, sample<x, y>>;
};
template <class Rows>
  requires requires { typename Rows::element; }
struct visited<Rows> {
  using type = typename Rows::element;
};
template <class Rows>
  requires(named_source<Rows> && !element_source<Rows>)
struct visited<Rows> {
  using type = typename Rows::named;
};
template <class Rows>
using element_t = typename visited<Rows>::type;

/// Calls f with element i of rows, which need not outlive the call.
template <class Rows, class F>
decltype(auto) visit(const Rows& rows, sample_index i, F&& f) {
  if constexpr (element_source<Rows>) {
    return rows.visit(i, f);
  } else if constexpr (named_source<Rows>) {
    using layout = named_layout<typename Rows::named>;
    const scratch<std::byte> memory(layout::bytes);
    rows.write(i, i, layout::place(memory.data()), std::identity{});
    return f(layout::shown(memory.data()));
  } else {
    using T = shown_value_t<Rows>;
    constexpr bool only_x = Rows::labels == label_kind::none;
    constexpr bool nothing_to_write = has_direct<Rows> && (only_x || has_label<Rows>);
    const scratch<T> x(nothing_to_write ? 0 : std::size_t{Rows::sample_shape.size()});
    const scratch<T> target(std::size_t{Rows::target_shape.size()});
    std::int32_t label = 0;
    const T* from = x.data();
    if constexpr (nothing_to_write)
      from = rows.direct(i);
    else
      rows.write(i, i, sample_place<T>{x.data(), &label, target.data()}, std::identity{});
    if constexpr (nothing_to_write && !only_x) label = rows.label(i);
    if constexpr (only_x)
      return f(element_t<Rows>{from});
    else if constexpr (Rows::labels == label_kind::sparse)
      return f(element_t<Rows>{{from}, label});
    else
      return f(element_t<Rows>{{from}, {target.data()}});
  }
}

/// The parts of an element, recursively: those of (index, (x, y)) are index, x, y.
template <class E>
std::tuple<const E&> leaves(const E& e) {
  return {e};
}
template <class X, class Y>
auto leaves(const sample<X, Y>& e) {
  return std::tuple<const X&, const Y&>(e.x, e.y);
}
template <class X, class Y>
auto leaves(const std::pair<X, Y>& e) {
  return std::tuple_cat(detail::leaves(e.first), detail::leaves(e.second));
}
template <class F, class Leaves>
inline constexpr bool takes_leaves = false;
template <class F, class... Leaf>
inline constexpr bool takes_leaves<F, std::tuple<Leaf...>> = std::is_invocable_v<F&, Leaf...>;

/// The forms in which F takes an element: as a whole, as x and y of a sample, or as index, x and y of an enumerated sample.
template <class F, class E>
struct callable {
  static constexpr bool with_element = std::is_invocable_v<F&, const E&>, with_parts = false, with_leaves = false;
};
template <class F, class X, class Y>
struct callable<F, sample<X, Y>> {
  static constexpr bool with_element = std::is_invocable_v<F&, const sample<X, Y>&>;
  static constexpr bool with_parts = std::is_invocable_v<F&, const X&, const Y&>, with_leaves = with_parts;
};
template <class F, class X, class Y>
struct callable<F, std::pair<X, Y>> {
  static constexpr bool with_element = std::is_invocable_v<F&, const std::pair<X, Y>&>;
  static constexpr bool with_parts = std::is_invocable_v<F&, const X&, const Y&>;
  static constexpr bool with_leaves = takes_leaves<F, decltype(detail::leaves(std::declval<const std::pair<X, Y>&>()))>;
};
template <class F, class E>
inline constexpr bool takes = callable<F, E>::with_element || callable<F, E>::with_parts || callable<F, E>::with_leaves;

template <class F, class E>
decltype(auto) call(const F& f, const E& e) {
  if constexpr (!callable<F, E>::with_parts && callable<F, E>::with_element)
    return f(e);
  else if constexpr (!callable<F, E>::with_parts)
    return std::apply(f, leaves(e));
  else if constexpr (requires { e.first; })
    return f(e.first, e.second);
  else
    return f(e.x, e.y);
}

/// Calls f with element i of rows, then `then` with the result. Converts exceptions of f to strata_error that names the
/// element.
template <class Rows, class F, class Then>
decltype(auto) call(const char* stage, const Rows& rows, sample_index i, const F& f, Then&& then) {
  return visit(rows, i, [&](const element_t<Rows>& e) -> decltype(auto) {
    const auto result = [&]() -> decltype(auto) {
      STRATA_TRY { return call(f, e); }
      STRATA_CATCH(const std::exception& failure) { throw_error({stage, ": ", describe(rows, i), ": ", failure.what()}); }
    };
    return then(result());
  });
}

/// The result type of a user's function for an element.
template <class F, class Rows>
using mapped_t = std::remove_cvref_t<decltype(call(std::declval<const F&>(), std::declval<const element_t<Rows>&>()))>;

}  // namespace strata::data::detail
