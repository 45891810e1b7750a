// Copies of arrays from devices to the host.
#pragma once
#include <cstddef>
#include <span>
#include <strata/xla/pjrt/client.hpp>
#include <string_view>
#include <vector>

namespace strata::pjrt {

/// Copies that have begun. The destructor waits for them, also after an error: they write to memory of the host.
class copies_to_host {
  std::vector<event>& begun_;

 public:
  /// events: an empty vector, whose memory is used.
  explicit copies_to_host(std::vector<event>& events) : begun_(events) {}
  copies_to_host(const copies_to_host&) = delete;
  ~copies_to_host() {
    for (const event& e : begun_) e.wait_quietly();
    begun_.clear();
  }

  /// Begins to copy, row-major. Throws plugin_error.
  void begin(const buffer& from, const stablehlo::tensor_type& type, std::span<std::byte> to) {
    begun_.emplace_back();
    begun_.back() = from.copy_to_host(type, to);
  }
  /// Returns when all have ended. Throws plugin_error, which begins with `action`.
  void wait(std::string_view action) const {
    for (const event& e : begun_) e.wait(action);
  }
};

}  // namespace strata::pjrt
