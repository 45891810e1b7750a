// The parts of compile errors that read as sentences: none of the templates is ever defined, so that the error is its name.
#pragma once

namespace strata {

/// A reason is a named object: its NAME appears in compile errors, its words in run-time messages. Words that would only repeat
/// the name are left out.
struct reason {
  const char* words = "";
};
/// A model of a concept lacks a member.
template <class Model, class Why>
struct incomplete_model;
/// A function or a class does not take an argument.
template <class Argument, class Why>
struct wrong_argument;

namespace detail {
template <const reason& Why>
struct because;
/// Stands in a sentence for an argument that is missing. Never defined.
struct nothing;
/// What a verdict is when nothing is wrong.
struct no_complaint {
  using type = no_complaint;
  constexpr bool operator[](int) const { return true; }
};
/// What a verdict is when another sentence has been told, so that this one must be silent.
struct told : no_complaint {};
/// `static_assert(diagnosed<verdict>[0])` compiles if the verdict is no_complaint, and is otherwise one error of few lines that
/// has the verdict's name: compilers list no candidates of an operator that only members have.
template <class Verdict>
extern const Verdict diagnosed;
template <>
inline constexpr no_complaint diagnosed<no_complaint>{};
template <>
inline constexpr told diagnosed<told>{};
/// What a verdict is when a model lacks a member.
template <class Model, const reason& Why>
struct lacks {
  using type = incomplete_model<Model, because<Why>>;
};
}  // namespace detail

}  // namespace strata
