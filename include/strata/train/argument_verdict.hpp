// The diagnostic for an argument that does not fit.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <type_traits>

namespace strata {

namespace detail {

/// The diagnostic for the first refused argument.
template <class Refused, const reason& Why>
struct argument_verdict {
  using type = wrong_argument<at_t<0, Refused>, because<Why>>;
};
template <const reason& Why>
struct argument_verdict<type_list<>, Why> {
  using type = no_complaint;
};

template <class Verdict>
struct is_complaint : std::bool_constant<!std::is_same_v<Verdict, no_complaint>> {};
/// The first of several verdicts that is a diagnostic; no_complaint if none is.
template <class... Verdict>
using first_complaint = at_t<0, join_t<filter_t<is_complaint, Verdict...>, type_list<no_complaint>>>;

}  // namespace detail

}  // namespace strata
