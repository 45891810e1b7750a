// A callback is a type with at least one of the hooks, each with the right signature.
#pragma once
#include <concepts>
#include <iterator>
#include <strata/state/named_array.hpp>
#include <strata/state/pass_state.hpp>
#include <strata/state/training_state.hpp>
#include <string_view>
#include <type_traits>
#include <vector>

namespace strata {

class fitted_model;  // strata/train/fitted_model.hpp
struct training_session;

namespace hooks {
// A struct for each hook: its argument, whether a callback has a member of that name, and the call. A macro, because only a macro
// can compose a name.
#define STRATA_HOOK(name, seen)                                        \
  struct name {                                                        \
    using state = seen;                                                \
    template <class C>                                                 \
    static constexpr bool named = requires { &C::on_##name; };         \
    template <class C, class... With>                                  \
      requires requires(C& c, With&... with) { c.on_##name(with...); } \
    static void call(C& c, With&... with) {                            \
      c.on_##name(with...);                                            \
    }                                                                  \
  };
STRATA_HOOK(train_begin, training_state)
STRATA_HOOK(train_end, training_state)
STRATA_HOOK(epoch_begin, training_state)
STRATA_HOOK(epoch_end, training_state)
STRATA_HOOK(batch_begin, training_state)
STRATA_HOOK(batch_end, training_state)
STRATA_HOOK(test_begin, pass_state)
STRATA_HOOK(test_end, pass_state)
STRATA_HOOK(test_batch_begin, pass_state)
STRATA_HOOK(test_batch_end, pass_state)
STRATA_HOOK(predict_begin, pass_state)
STRATA_HOOK(predict_end, pass_state)
STRATA_HOOK(predict_batch_begin, pass_state)
STRATA_HOOK(predict_batch_end, pass_state)
#undef STRATA_HOOK

/// Whether the hook can be called without the model.
template <class Hook, class C>
concept plain = requires(C c, typename Hook::state& s) { Hook::call(c, s); };
/// Whether the hook can be called with the model.
template <class Hook, class C>
concept of_model = requires(C c, typename Hook::state& s, fitted_model& m) { Hook::call(c, s, m); };

template <class... Hooks>
struct list {
  template <class C>
  static constexpr bool any = (Hooks::template named<C> || ...);
  template <class C>
  static constexpr bool fit = ((!Hooks::template named<C> || plain<Hooks, C> || of_model<Hooks, C>) && ...);
  template <class C>
  static constexpr bool any_of_model = ((Hooks::template named<C> && of_model<Hooks, C>) || ...);
};
using of_fit = list<train_begin, train_end, epoch_begin, epoch_end, batch_begin, batch_end>;
using of_test = list<test_begin, test_end, test_batch_begin, test_batch_end>;
using of_predict = list<predict_begin, predict_end, predict_batch_begin, predict_batch_end>;

template <class C>
concept names_session = requires { &C::restore; } || requires { &C::after_step; } || requires { &C::after_epoch; } ||
                        requires { &C::after_training; };

/// Names that are not hooks: names of Keras that differ, and likely misspellings.
template <class C>
concept misspelt = requires { &C::on_train_batch_begin; } || requires { &C::on_train_batch_end; } ||
                   requires { &C::on_epoch_start; } || requires { &C::on_epoch_begins; } || requires { &C::on_epoch_ends; } ||
                   requires { &C::on_batch_start; } || requires { &C::on_batch_begins; } || requires { &C::on_batch_ends; } ||
                   requires { &C::on_train_start; } || requires { &C::on_train_begins; } || requires { &C::on_train_ends; };

/// A member `adds` that is a text.
template <class C>
concept adds_a_value = requires(C& c) { std::string_view(c.adds); };
template <class C>
concept adds_values = requires(C& c) { std::string_view(*std::begin(c.adds)); };

struct any_adds {
  int adds;
};
/// `adds` is ambiguous here if C has a member of that name, even a private one.
template <class C>
struct beside_adds : C, any_adds {};
template <class C>
concept lacks_adds = std::is_final_v<C> || requires { &beside_adds<C>::adds; };

template <class C>
concept any = of_fit::any<C> || of_test::any<C> || of_predict::any<C>;
/// Whether one of the hooks of C takes the model.
template <class C>
concept any_of_model = of_fit::any_of_model<C> || of_test::any_of_model<C> || of_predict::any_of_model<C>;
/// Whether a callback has a member `adds` that is neither a text nor a range of texts.
template <class C>
concept misnames_values = any<C> && !adds_a_value<C> && !adds_values<C> && !lacks_adds<C>;
}  // namespace hooks

namespace core {
/// Hooks: on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, on_batch_begin and on_batch_end of fit, which take a
/// training_state&; on_test_begin, on_test_end, on_test_batch_begin, on_test_batch_end of evaluate and of the validation of fit,
/// and the same with on_predict_ of predict, which take a pass_state&. Each may take a fitted_model& after it. In synchronous
/// training, hooks of fit and evaluate see metrics over the global batch, and all processes decide alike; with an asynchronous
/// parameter server each worker decides for itself. A callback that sets a value in on_epoch_end lists its name in a member
/// `adds`, a text or a range of texts, so that later callbacks can monitor the value.
template <class C>
concept callback = hooks::any<C> && hooks::of_fit::fit<C> && hooks::of_test::fit<C> && hooks::of_predict::fit<C>;

/// A callback whose state is part of the training: snapshots contain it, and processes that join late receive it. It is reset in
/// on_train_begin, unless training_state::resumed is set because `set_state` was called before. (A fit that is resumed within an
/// epoch calls on_epoch_begin again.)
///   `state() const`     numbers by name
///   `set_state(logs)`   throws strata_error if one is missing
///   `settings() const`  optional: a text; a training with another one does not continue a snapshot
template <class C>
concept stateful_callback = callback<C> && requires(C c, const C& k, const logs& state) {
  C::name;
  { k.state() } -> std::same_as<logs>;
  c.set_state(state);
};

/// A stateful_callback with arrays, such as the best weights so far.
///   `arrays(fitted_model&)`   returns their places: always the same number and sizes
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
}  // namespace core

}  // namespace strata
