// A strategy is a policy: from the program's type it makes the executor of its step.
#pragma once
#include <concepts>

namespace strata {

namespace detail {
struct any_program;
}

/// `executor<Program>` models the executor concept; `make<Program>(optimizer, seed)` builds one.
template <class S>
concept strategy = std::copy_constructible<S> && requires {
  { S::name } -> std::convertible_to<const char*>;
  typename S::template executor<detail::any_program>;
};

}  // namespace strata
