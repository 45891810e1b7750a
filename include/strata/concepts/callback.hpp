// A callback is a type with at least one of the hooks, each with the right signature.
#pragma once
#include <concepts>
#include <strata/train/named_array.hpp>
#include <strata/train/training_state.hpp>
#include <vector>

namespace strata {

class fitted_model;  // strata/train/fitted_model.hpp
struct training_session;

namespace hooks {
// For each hook: whether a member of that name exists, and whether it can be called, with the model or without it.
template <class C>
concept names_train_begin = requires { &C::on_train_begin; };
template <class C>
concept names_train_end = requires { &C::on_train_end; };
template <class C>
concept names_epoch_begin = requires { &C::on_epoch_begin; };
template <class C>
concept names_epoch_end = requires { &C::on_epoch_end; };
template <class C>
concept names_batch_begin = requires { &C::on_batch_begin; };
template <class C>
concept names_batch_end = requires { &C::on_batch_end; };

template <class C>
concept train_begin = requires(C c, training_state& s) { c.on_train_begin(s); };
template <class C>
concept train_end = requires(C c, training_state& s) { c.on_train_end(s); };
template <class C>
concept epoch_begin = requires(C c, training_state& s) { c.on_epoch_begin(s); };
template <class C>
concept epoch_end = requires(C c, training_state& s) { c.on_epoch_end(s); };
template <class C>
concept batch_begin = requires(C c, training_state& s) { c.on_batch_begin(s); };
template <class C>
concept batch_end = requires(C c, training_state& s) { c.on_batch_end(s); };

template <class C>
concept train_begin_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_train_begin(s, m); };
template <class C>
concept train_end_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_train_end(s, m); };
template <class C>
concept epoch_begin_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_epoch_begin(s, m); };
template <class C>
concept epoch_end_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_epoch_end(s, m); };
template <class C>
concept batch_begin_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_batch_begin(s, m); };
template <class C>
concept batch_end_of_model = requires(C c, training_state& s, fitted_model& m) { c.on_batch_end(s, m); };

template <class C>
concept names_session = requires { &C::restore; } || requires { &C::after_step; } || requires { &C::after_epoch; } ||
                        requires { &C::after_training; };

template <class C>
concept any = names_train_begin<C> || names_train_end<C> || names_epoch_begin<C> || names_epoch_end<C> || names_batch_begin<C> ||
              names_batch_end<C>;
/// Whether one of its hooks takes the model.
template <class C>
concept any_of_model = train_begin_of_model<C> || train_end_of_model<C> || epoch_begin_of_model<C> || epoch_end_of_model<C> ||
                       batch_begin_of_model<C> || batch_end_of_model<C>;
}  // namespace hooks

/// Hooks: on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, on_batch_begin, on_batch_end; each takes a training_state&
/// or, after it, a fitted_model&, too. Where processes train in step, hooks see metrics over the global batch, and all processes
/// take the same decisions; with an asynchronous parameter server each worker decides for itself.
template <class C>
concept callback = hooks::any<C> && (!hooks::names_train_begin<C> || hooks::train_begin<C> || hooks::train_begin_of_model<C>) &&
                   (!hooks::names_train_end<C> || hooks::train_end<C> || hooks::train_end_of_model<C>) &&
                   (!hooks::names_epoch_begin<C> || hooks::epoch_begin<C> || hooks::epoch_begin_of_model<C>) &&
                   (!hooks::names_epoch_end<C> || hooks::epoch_end<C> || hooks::epoch_end_of_model<C>) &&
                   (!hooks::names_batch_begin<C> || hooks::batch_begin<C> || hooks::batch_begin_of_model<C>) &&
                   (!hooks::names_batch_end<C> || hooks::batch_end<C> || hooks::batch_end_of_model<C>);

/// A callback whose state belongs to the training: snapshots hold it, and processes that join late get it. It begins anew in
/// on_train_begin, unless training_state::resumed says that `set_state` was called before. (A fit that is resumed within an epoch
/// calls on_epoch_begin again.)
///   `state() const`     numbers by name
///   `set_state(logs)`   throws strata::error if one is missing
///   `settings() const`  optional: a text; a training with another one does not continue a snapshot
template <class C>
concept stateful_callback = callback<C> && requires(C c, const C& k, const logs& state) {
  C::name;
  { k.state() } -> std::same_as<logs>;
  c.set_state(state);
};

/// One that keeps arrays as well, such as the best weights so far.
///   `arrays(fitted_model&)`   returns where they lie: always as many, of the same sizes
template <class C>
concept callback_with_arrays = stateful_callback<C> && requires(C c, fitted_model& m) {
  { c.arrays(m) } -> std::same_as<std::vector<named_array>>;
};

/// A callback that may read and replace the state of a fit, such as backup_and_restore.
///   `restore`          before anything else
///   `after_step`, `after_epoch`   after the hooks of all callbacks
///   `after_training`   at the end, unless an exception ends fit
/// All processes of a training call them at the same steps.
template <class C>
concept session_callback = requires(C c, training_session& s) {
  c.restore(s);
  c.after_step(s);
  c.after_epoch(s);
  c.after_training(s);
};

}  // namespace strata
