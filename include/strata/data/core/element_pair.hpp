// Pairs of elements, as zip and enumerate pass them. They do not outlive the elements.
#pragma once
#include <strata/data/core/sample.hpp>
#include <type_traits>
#include <utility>

namespace strata::data::detail {

/// A reference for types that are not trivially copyable.
template <class E>
using shown = std::conditional_t<std::is_trivially_copyable_v<E>, E, const E&>;
template <class A, class B>
using element_pair = std::pair<shown<A>, shown<B>>;

template <class E>
struct stored<const E&> : stored<E> {};

}  // namespace strata::data::detail
