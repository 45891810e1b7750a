// What a strategy is whose arguments are wrong: deduction guides refuse them with one sentence, where a compiler would list all
// guides.
#pragma once
#include <strata/base/reason.hpp>

namespace strata {
template <int Stage>
struct zero;  // exchange/zero/zero.hpp
}

namespace strata::detail {

/// The first template argument of a strategy that has been given wrong arguments: the sentence about them.
template <class Given, const reason& Why>
using refused_with = wrong_argument<Given, because<Why>>;

/// What such a strategy derives from: it takes the arguments and goes on as `Instead`, so that its sentence is the only error. It
/// tells the sentence itself, because a compiler writes some lines for each base class.
template <class Instead>
struct refusing : Instead {
  template <class... Arguments>
  explicit refusing(const Arguments&...) {}
};

/// Whether it is a division of a network, pipelines or tensor_ranks. In its place stands the sentence about one that is wrong.
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
