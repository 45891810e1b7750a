// A callback is a type with at least one of the hooks, each with the right signature.
#pragma once
#include <strata/train/training_state.hpp>

namespace strata {

struct training_session;

namespace hooks {
// For each hook: whether a member of that name exists, and whether it can be called.
template <class C>
concept names_train_begin = requires { &C::on_train_begin; };
template <class C>
concept names_train_end = requires { &C::on_train_end; };
template <class C>
concept names_epoch_begin = requires { &C::on_epoch_begin; };
template <class C>
concept names_epoch_end = requires { &C::on_epoch_end; };
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
concept batch_end = requires(C c, training_state& s) { c.on_batch_end(s); };

template <class C>
concept names_session = requires { &C::restore; } || requires { &C::after_step; } || requires { &C::after_epoch; } ||
                        requires { &C::after_training; };

template <class C>
concept any = names_train_begin<C> || names_train_end<C> || names_epoch_begin<C> || names_epoch_end<C> || names_batch_end<C>;
}  // namespace hooks

/// Hooks: on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, on_batch_end; each takes a training_state&.
/// They see metrics over the global batch, so that all processes take the same decisions.
template <class C>
concept callback =
    hooks::any<C> && (!hooks::names_train_begin<C> || hooks::train_begin<C>) &&
    (!hooks::names_train_end<C> || hooks::train_end<C>) && (!hooks::names_epoch_begin<C> || hooks::epoch_begin<C>) &&
    (!hooks::names_epoch_end<C> || hooks::epoch_end<C>) && (!hooks::names_batch_end<C> || hooks::batch_end<C>);

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
