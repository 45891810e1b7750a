// The parts of diagnostics, which are compile errors that read as sentences. None of the templates is ever defined, so that the
// error message is the type name.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata {

namespace core {
/// A reason is a named object: its NAME appears in compile errors, its words in run-time messages. Words that would only repeat
/// the name are left out.
struct reason {
  const char* words = "";
};
}  // namespace core
/// A model of a concept lacks a member.
template <class Model, class Why>
struct incomplete_model;
/// A function or a class does not take an argument.
template <class Argument, class Why>
struct wrong_argument;

namespace detail {
template <const reason& Why>
struct because;
/// Represents a missing argument in a diagnostic. Never defined.
struct nothing;
/// The verdict if nothing is wrong.
struct no_complaint {
  using type = no_complaint;
  constexpr bool operator[](int) const { return true; }
};
/// The verdict if another diagnostic has already been emitted, so that this one must not be.
struct told : no_complaint {};
/// `static_assert(diagnosed<verdict>[0])` compiles if the verdict is no_complaint, and is otherwise one short error that contains
/// the verdict's name: compilers list no candidates for an operator that can only be a member.
template <class Verdict>
extern const Verdict diagnosed;
template <>
inline constexpr no_complaint diagnosed<no_complaint>{};
template <>
inline constexpr told diagnosed<told>{};
/// The verdict if a model lacks a member.
template <class Model, const reason& Why>
struct lacks {
  using type = incomplete_model<Model, because<Why>>;
};
}  // namespace detail

}  // namespace strata
