// Lets the plugins of several processes find each other, through values that the processes of a training store for them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <strata/base/exceptions.hpp>
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/plugin_error.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strata::pjrt {

/// Values by key, shared by all processes of a training. Both members throw strata_error if that fails.
class value_store {
 public:
  virtual ~value_store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is set. Throws if it is not set in time.
  virtual std::string get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

/// The callbacks of PJRT_Client_Create. A plugin may call them from any of its threads, as long as its client lives.
class process_values {
  std::shared_ptr<value_store> store_;

 public:
  /// Null: this process is alone.
  explicit process_values(std::shared_ptr<value_store> store = nullptr) : store_(std::move(store)) {}

  void lend_to(abi::client_create& create) {
    if (!store_) return;
    create.get = &get, create.put = &put, create.try_get = &try_get;
    create.get_argument = create.put_argument = create.try_get_argument = this;
  }

 private:
  static constexpr std::chrono::milliseconds at_once{20};

  static abi::error* put(abi::key_value_put* a) {
    return guarded(*a, status::internal,
                   [a](value_store& store) { store.set({a->key, a->key_size}, {a->value, a->value_size}); });
  }
  static abi::error* get(abi::key_value_get* a) {
    return guarded(*a, status::deadline_exceeded, [a](value_store& store) {
      give(*a, store.get({a->key, a->key_size}, std::chrono::milliseconds(std::max(1, a->timeout_in_ms))));
    });
  }
  static abi::error* try_get(abi::key_value_try_get* a) {
    return guarded(*a, status::not_found, [a](value_store& store) { give(*a, store.get({a->key, a->key_size}, at_once)); });
  }
  template <class Arguments>
  static void give(Arguments& a, std::string_view value) {
    a.value = new char[value.size()];
    a.value_size = value.size();
    std::ranges::copy(value, a.value);
    a.destroy_value = [](char* given) { delete[] given; };
  }
  template <class Arguments, class F>
  static abi::error* guarded(const Arguments& a, status code, F&& f) {
    STRATA_TRY {
      f(*static_cast<process_values*>(a.argument)->store_);
      return nullptr;
    }
    STRATA_CATCH(const std::exception& failure) {
      const std::string_view what = failure.what();
      return (*a.callback_error)(int(code), what.data(), what.size());
    }
    STRATA_CATCH_ALL {
      constexpr std::string_view what = "an unknown exception";
      return (*a.callback_error)(int(code), what.data(), what.size());
    }
  }
};

}  // namespace strata::pjrt
