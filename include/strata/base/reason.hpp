// The parts of compile errors that read as sentences: none of the templates is ever defined, so that the error is its name.
#pragma once

namespace strata {

/// A reason is a named object: its NAME appears in compile errors, its words in run-time messages.
struct reason {
  const char* words;
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
struct no_complaint {};
/// What a verdict is when another sentence has been told, so that this one must be silent.
struct told {};
/// For static_assert(sizeof(spoken<verdict>()) > 0): the sentence as a template argument, which g++ prints at once. Of a member
/// type it would first print the class.
template <class Sentence>
Sentence& spoken();
/// What a verdict is when a model lacks a member.
template <class Model, const reason& Why>
struct lacks {
  using type = incomplete_model<Model, because<Why>>;
};
}  // namespace detail

}  // namespace strata
