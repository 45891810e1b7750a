// Asynchronous operations of a plugin.
#pragma once
#include <strata/xla/pjrt/abi.hpp>
#include <strata/xla/pjrt/plugin.hpp>
#include <string_view>
#include <utility>

namespace strata::pjrt {

/// A PJRT event: the end of an asynchronous operation of a plugin, such as a copy or an execution.
class event {
  const plugin* plugin_ = nullptr;
  abi::event* handle_ = nullptr;

 public:
  event() = default;
  event(const plugin& p, abi::event* handle) : plugin_(&p), handle_(handle) {}
  event(event&& other) noexcept : plugin_(other.plugin_), handle_(std::exchange(other.handle_, nullptr)) {}
  event& operator=(event&& other) noexcept {
    std::swap(plugin_, other.plugin_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~event() {
    if (!handle_) return;
    abi::padded<abi::event_only> arguments;
    arguments->event = handle_;
    plugin_->call_quietly(abi::functions::event_destroy, arguments);
  }

  /// Returns when it is done. Throws plugin_error, which begins with `action`, if it failed.
  void wait(std::string_view action) const {
    if (!handle_) return;
    abi::padded<abi::event_only> arguments;
    arguments->event = handle_;
    plugin_->call(action, abi::functions::event_await, arguments);
  }
  bool is_ready() const {
    if (!handle_) return true;
    abi::padded<abi::event_is_ready> arguments;
    arguments->event = handle_;
    plugin_->call("wait", abi::functions::event_is_ready, arguments);
    return arguments->is_ready;
  }
  /// For destructors: returns when it is done or has failed.
  void wait_quietly() const noexcept {
    if (!handle_) return;
    abi::padded<abi::event_only> arguments;
    arguments->event = handle_;
    plugin_->call_quietly(abi::functions::event_await, arguments);
  }
};

}  // namespace strata::pjrt
