// The hooks of callbacks with their types erased: the loops that call them are compiled once per program.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <strata/base/error.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/state/named_array.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::detail {

/// The hooks of one callback. A hook that the callback lacks does nothing.
class hook_calls {
 public:
  // Of a session_callback.
  virtual void fit_begin(training_session&) {}
  virtual void step_end(training_session&) {}
  virtual void fit_epoch_end(training_session&) {}
  virtual void fit_end(training_session&) {}

  virtual void train_begin(training_state&) {}
  virtual void train_end(training_state&) {}
  virtual void epoch_begin(training_state&) {}
  virtual void epoch_end(training_state&) {}
  virtual void batch_begin(training_state&) {}
  virtual void batch_end(training_state&) {}

  virtual void test_begin(pass_state&) {}
  virtual void test_end(pass_state&) {}
  virtual void test_batch_begin(pass_state&) {}
  virtual void test_batch_end(pass_state&) {}
  virtual void predict_begin(pass_state&) {}
  virtual void predict_end(pass_state&) {}
  virtual void predict_batch_begin(pass_state&) {}
  virtual void predict_batch_end(pass_state&) {}

  virtual bool sees_batches() const { return false; }  // of fit
  virtual bool sees_tests() const { return false; }
  virtual bool sees_test_batches() const { return false; }

  virtual void expect_values(logs&) const {}

  /// The name of a callback with a state; otherwise null.
  virtual const char* name() const { return nullptr; }
  virtual std::string settings() const { return {}; }
  virtual logs state() const { return {}; }
  virtual void set_state(const logs&) {}
  virtual bool has_arrays() const { return false; }
  virtual std::vector<named_array> arrays() { return {}; }

 protected:
  ~hook_calls() = default;
};

/// An option of fit that is not a callback has no hooks.
template <class Option>
class hooks_of {
 public:
  hooks_of(Option&, fitted_model*) {}
  hook_calls* get() { return nullptr; }
};

template <class C>
  requires callback<C> || session_callback<C>
class hooks_of<C> final : public hook_calls {
  C& callback_;
  fitted_model* model_;

  static constexpr bool is_whole = stateful_callback<C> || !requires { &C::set_state; };
  static_assert(is_whole, "a callback with set_state(const logs&) has a static name and `logs state() const`, too");

  template <class Hook>
  void call(typename Hook::state& s) {
    if constexpr (hooks::plain<Hook, C>)
      Hook::call(callback_, s);
    else if constexpr (hooks::of_model<Hook, C>)
      Hook::call(callback_, s, *model_);
  }
  template <class... Hooks>
  static constexpr bool has = hooks::list<Hooks...>::template any<C>;

 public:
  /// `model` may be null if the callback does not need it.
  hooks_of(C& callback, fitted_model* model) : callback_(callback), model_(model) {}
  hook_calls* get() { return this; }

  void fit_begin(training_session& s) override {
    if constexpr (session_callback<C>) callback_.restore(s);
  }
  void step_end(training_session& s) override {
    if constexpr (session_callback<C>) callback_.after_step(s);
  }
  void fit_epoch_end(training_session& s) override {
    if constexpr (session_callback<C>) callback_.after_epoch(s);
  }
  void fit_end(training_session& s) override {
    if constexpr (session_callback<C>) callback_.after_training(s);
  }

  void train_begin(training_state& s) override { call<hooks::train_begin>(s); }
  void train_end(training_state& s) override { call<hooks::train_end>(s); }
  void epoch_begin(training_state& s) override { call<hooks::epoch_begin>(s); }
  void epoch_end(training_state& s) override { call<hooks::epoch_end>(s); }
  void batch_begin(training_state& s) override { call<hooks::batch_begin>(s); }
  void batch_end(training_state& s) override { call<hooks::batch_end>(s); }

  void test_begin(pass_state& s) override { call<hooks::test_begin>(s); }
  void test_end(pass_state& s) override { call<hooks::test_end>(s); }
  void test_batch_begin(pass_state& s) override { call<hooks::test_batch_begin>(s); }
  void test_batch_end(pass_state& s) override { call<hooks::test_batch_end>(s); }
  void predict_begin(pass_state& s) override { call<hooks::predict_begin>(s); }
  void predict_end(pass_state& s) override { call<hooks::predict_end>(s); }
  void predict_batch_begin(pass_state& s) override { call<hooks::predict_batch_begin>(s); }
  void predict_batch_end(pass_state& s) override { call<hooks::predict_batch_end>(s); }

  bool sees_batches() const override { return has<hooks::batch_begin, hooks::batch_end> || session_callback<C>; }
  bool sees_tests() const override { return hooks::of_test::any<C>; }
  bool sees_test_batches() const override { return has<hooks::test_batch_end>; }

  void expect_values([[maybe_unused]] logs& names) const override {
    if constexpr (hooks::adds_a_value<C>)
      names.set(callback_.adds, 0);
    else if constexpr (hooks::adds_values<C>)
      for (const auto& each : callback_.adds) names.set(each, 0);
  }

  const char* name() const override {
    if constexpr (stateful_callback<C>)
      return C::name;
    else
      return nullptr;
  }
  std::string settings() const override {
    if constexpr (requires { callback_.settings(); })
      return callback_.settings();
    else
      return {};
  }
  logs state() const override {
    if constexpr (stateful_callback<C>)
      return callback_.state();
    else
      return {};
  }
  void set_state(const logs& own) override {
    if constexpr (stateful_callback<C>) callback_.set_state(own);
  }
  bool has_arrays() const override { return callback_with_arrays<C>; }
  std::vector<named_array> arrays() override {
    if constexpr (callback_with_arrays<C>)
      return callback_.arrays(*model_);
    else
      return {};
  }
};

/// The hooks of all callbacks among some options, in their order: hooks(&hook_calls::epoch_begin, state).
class hook_list {
  /// A subset of the callbacks, in their order.
  class part {
    grown_array<hook_calls*> calls_;
    std::size_t count_ = 0;

   public:
    explicit part(std::size_t most) : calls_(most) {}
    void add(hook_calls* c) { calls_[count_++] = c; }
    bool empty() const { return count_ == 0; }
    hook_calls* const* begin() const { return calls_.data(); }
    hook_calls* const* end() const { return calls_.data() + count_; }
  };
  part all_, of_batches_, of_tests_;

  /// Calls f(callback, prefix of the names of its state).
  void each_with_state(auto&& f) const {
    int count = 0;
    for (hook_calls* c : all_)
      if (c->name()) f(*c, text_of({c->name(), '/', count++, '/'}));
  }
  template <class State>
  static void call(const part& some, void (hook_calls::*hook)(State&), State& s) {
    for (hook_calls* c : some) (c->*hook)(s);
  }

 public:
  /// A null pointer stands for an option that is not a callback.
  hook_list(std::initializer_list<hook_calls*> options);

  training_session* session = nullptr;  // needed if one of the options is a session_callback
  bool in_fit = false;

  template <class State>
  void operator()(void (hook_calls::*hook)(State&), State& s) const {
    call(all_, hook, s);
  }
  /// Calls only callbacks that have hooks of batches of fit.
  template <class State>
  void of_batch(void (hook_calls::*hook)(State&), State& s) const {
    call(of_batches_, hook, s);
  }
  bool see_batches() const { return !of_batches_.empty(); }
  /// Calls only callbacks that have hooks of evaluate, or of the validation of fit.
  void of_test(void (hook_calls::*hook)(pass_state&), pass_state& s) const { call(of_tests_, hook, s); }
  bool see_tests() const { return !of_tests_.empty(); }
  bool see_test_batches() const {
    return std::any_of(of_tests_.begin(), of_tests_.end(), [](const hook_calls* c) { return c->sees_test_batches(); });
  }
  void of_session(void (hook_calls::*hook)(training_session&)) const {
    if (session) call(all_, hook, *session);
  }

  /// Calls on_train_begin of each. `expected` then has the names of the values of an epoch, and of what the callbacks before it
  /// add: their hooks are called first.
  void train_begin(training_state& s) const {
    for (hook_calls* c : all_) {
      c->train_begin(s);
      c->expect_values(s.expected);
    }
  }
  void describe(std::vector<std::string>& lines) const;
  logs state() const;
  void set_state(const logs& all) const;
  void add_arrays(std::vector<named_array>& all) const;
};

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/train/hook_calls.ipp>
#endif
