// Strategies with wrong arguments: deduction guides refuse these with one diagnostic; otherwise a compiler would list all guides.
#pragma once
#include <strata/base/reason.hpp>

namespace strata {
template <int Stage>
struct zero;  // exchange/zero/zero.hpp
}

namespace strata::detail {

/// The first template argument of a strategy with wrong arguments: the diagnostic about them.
template <class Given, const reason& Why>
using refused_with = wrong_argument<Given, because<Why>>;

/// The base class of such a strategy: it accepts the arguments, and a trainer emits no second diagnostic. The strategy itself
/// emits the diagnostic, because a compiler prints some lines for each base class.
struct refused_strategy {
  static constexpr auto name = "refused_strategy";
  template <class>
  using executor = void;
  template <class... Arguments>
  explicit refused_strategy(const Arguments&...) {}
};

/// A division of a network, pipelines or tensor_ranks; a wrong one is replaced by its diagnostic.
template <class Division>
concept divides_network = requires { Division::groups; };

template <class T>
inline constexpr bool is_zero = false;
template <int Stage>
inline constexpr bool is_zero<zero<Stage>> = true;

/// A backend, such as fits_in<8_MiB>, which is a template argument of strategies.
template <class T>
concept names_backend = requires { T::name; } && (requires { typename T::device; } || requires { typename T::base; });

}  // namespace strata::detail
