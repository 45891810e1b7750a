// The diagnostic for an argument that does not fit.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>

namespace strata {

namespace detail {

/// The first refused argument, as a sentence.
template <class Refused, const reason& Why>
struct argument_verdict {
  using type = wrong_argument<at_t<0, Refused>, because<Why>>;
};
template <const reason& Why>
struct argument_verdict<type_list<>, Why> {
  using type = no_complaint;
};

}  // namespace detail

}  // namespace strata
