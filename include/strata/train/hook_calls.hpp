// The hooks of all callbacks of a fit, with their types erased: the loop that calls them is compiled once per program.
#pragma once
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/named_array.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace strata::detail {

/// The hooks of all callbacks among the options of fit.
class hook_calls {
 public:
  virtual void fit_begin() = 0;
  virtual void step_end() = 0;
  virtual void fit_epoch_end() = 0;
  virtual void fit_end() = 0;
  virtual void train_begin(training_state&) = 0;
  virtual void train_end(training_state&) = 0;
  virtual void epoch_begin(training_state&) = 0;
  virtual void epoch_end(training_state&) = 0;
  virtual void batch_begin(training_state&) = 0;
  virtual void batch_end(training_state&) = 0;
  /// Of the callbacks that have a state.
  virtual void describe(std::vector<std::string>& lines) const = 0;
  virtual logs state() const = 0;
  virtual void set_state(const logs&) = 0;
  virtual void add_arrays(std::vector<named_array>&) = 0;

 protected:
  ~hook_calls() = default;
};

template <class... Options>
class hooks_of final : public hook_calls {
  std::tuple<Options&...> options_;
  fitted_model* model_;

  template <class F>
  void each(F&& f) const {
    std::apply([&](auto&... option) { (f(option), ...); }, options_);
  }
  /// f(callback, the beginning of the names of its state)
  template <class F>
  void each_with_state(F&& f) const {
    int count = 0;
    each([&]<class C>(C& c) {
      if constexpr (stateful_callback<C>) f(c, text_of({C::name, '/', count++, '/'}));
    });
  }

 public:
  template <class C>
  static constexpr bool is_whole = stateful_callback<C> || !requires { &C::set_state; };
  static_assert((is_whole<Options> && ...),
                "a callback with set_state(const logs&) has a static name and `logs state() const`, too");
  template <class C>
  static constexpr bool has_names_of_keras = requires { &C::on_train_batch_begin; } || requires { &C::on_train_batch_end; };
  static_assert((!has_names_of_keras<Options> && ...),
                "on_train_batch_begin and on_train_batch_end are on_batch_begin and on_batch_end here");

  /// `model` may be null if no callback needs it.
  explicit hooks_of(fitted_model* model, Options&... options) : options_(options...), model_(model) {}

  training_session* session = nullptr;  // needed if one of the options is a session_callback

  void fit_begin() override {
    each([&]<class C>(C& c) {
      if constexpr (session_callback<C>) c.restore(*session);
    });
  }
  void step_end() override {
    each([&]<class C>(C& c) {
      if constexpr (session_callback<C>) c.after_step(*session);
    });
  }
  void fit_epoch_end() override {
    each([&]<class C>(C& c) {
      if constexpr (session_callback<C>) c.after_epoch(*session);
    });
  }
  void fit_end() override {
    each([&]<class C>(C& c) {
      if constexpr (session_callback<C>) c.after_training(*session);
    });
  }

  void train_begin(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::train_begin<C>)
        c.on_train_begin(s);
      else if constexpr (hooks::train_begin_of_model<C>)
        c.on_train_begin(s, *model_);
    });
  }
  void train_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::train_end<C>)
        c.on_train_end(s);
      else if constexpr (hooks::train_end_of_model<C>)
        c.on_train_end(s, *model_);
    });
  }
  void epoch_begin(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::epoch_begin<C>)
        c.on_epoch_begin(s);
      else if constexpr (hooks::epoch_begin_of_model<C>)
        c.on_epoch_begin(s, *model_);
    });
  }
  void epoch_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::epoch_end<C>)
        c.on_epoch_end(s);
      else if constexpr (hooks::epoch_end_of_model<C>)
        c.on_epoch_end(s, *model_);
    });
  }
  void batch_begin(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::batch_begin<C>)
        c.on_batch_begin(s);
      else if constexpr (hooks::batch_begin_of_model<C>)
        c.on_batch_begin(s, *model_);
    });
  }
  void batch_end(training_state& s) override {
    each([&]<class C>(C& c) {
      if constexpr (hooks::batch_end<C>)
        c.on_batch_end(s);
      else if constexpr (hooks::batch_end_of_model<C>)
        c.on_batch_end(s, *model_);
    });
  }

  void describe(std::vector<std::string>& lines) const override {
    each_with_state([&]<class C>(C& c, const std::string& name) {
      std::string& line = lines.emplace_back(text_of({"callback ", name.substr(0, name.size() - 1)}));
      if constexpr (requires { c.settings(); })
        if (const std::string settings = c.settings(); !settings.empty()) line += ": " + settings;
      if constexpr (callback_with_arrays<C>) {
        const std::vector<named_array> arrays = c.arrays(*model_);
        std::size_t bytes = 0;
        for (const named_array& a : arrays) bytes += a.bytes.size();
        line += text_of({" with ", arrays.size(), " arrays of ", bytes, " bytes"});
      }
    });
  }
  logs state() const override {
    logs all;
    each_with_state([&](auto& c, const std::string& name) {
      for (const auto& [key, value] : c.state()) {
        if (key.find('\n') != key.npos) throw_error({"the state of a callback has a name with a line break: ", key});
        all.set(text_of({name, key}), value);
      }
    });
    return all;
  }
  void set_state(const logs& all) override {
    each_with_state([&](auto& c, const std::string& name) {
      logs own;
      for (const auto& [key, value] : all)
        if (key.starts_with(name)) own.set(key.substr(name.size()), value);
      c.set_state(own);
    });
  }
  void add_arrays(std::vector<named_array>& all) override {
    each_with_state([&]<class C>(C& c, const std::string& name) {
      if constexpr (callback_with_arrays<C>)
        for (named_array& a : c.arrays(*model_))
          all.push_back({text_of({"callback/", name, a.name}), std::move(a.extents), a.bytes});
    });
  }
};

}  // namespace strata::detail
