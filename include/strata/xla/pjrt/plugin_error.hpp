// The error that a plugin reports when it refuses or fails.
#pragma once
#include <charconv>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>

namespace strata::pjrt {

/// The codes of absl::Status.  https://abseil.io/docs/cpp/guides/status-codes
enum class status {
  ok,
  cancelled,
  unknown,
  invalid_argument,
  deadline_exceeded,
  not_found,
  already_exists,
  permission_denied,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  internal,
  unavailable,
  data_loss,
  unauthenticated
};

constexpr const char* name_of(status s) {
  constexpr const char* names[] = {
      "ok",        "cancelled",      "unknown",           "invalid argument",   "deadline exceeded",
      "not found", "already exists", "permission denied", "resource exhausted", "failed precondition",
      "aborted",   "out of range",   "unimplemented",     "internal",           "unavailable",
      "data loss", "unauthenticated"};
  return int(s) >= 0 && int(s) <= int(status::unauthenticated) ? names[int(s)] : "of a code that is unknown to strata";
}

/// An error of a plugin: "compile: the plugin NAME reports (invalid argument, code 3): ...".
struct plugin_error : strata_error {
  status code;
  std::string message;  // the plugin's own words

  plugin_error(std::string_view action, std::string_view plugin, status its_code, std::string words, std::string_view more = "")
      : strata_error(
            {action, ": the plugin ", plugin, " reports (", name_of(its_code), ", code ", int(its_code), "): ", words, more}),
        code(its_code),
        message(std::move(words)) {}
};

namespace detail {
inline std::string without_trailing_space(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

/// The line of a module's text to which an error message refers as :LINE:COLUMN; empty if it refers to none.
inline std::string line_named_by(std::string_view message, std::string_view text) {
  for (std::size_t at = message.find(':'); at != message.npos; at = message.find(':', at + 1)) {
    long line = 0, column = 0;
    const char* const end = message.data() + message.size();
    const auto [after_line, no_line] = std::from_chars(message.data() + at + 1, end, line);
    if (no_line != std::errc() || line < 1 || after_line == end || *after_line != ':') continue;
    if (std::from_chars(after_line + 1, end, column).ec != std::errc()) continue;
    for (; line > 1; --line) {
      const std::size_t end_of_line = text.find('\n');
      if (end_of_line == text.npos) return {};
      text.remove_prefix(end_of_line + 1);
    }
    return std::string(text.substr(0, text.find('\n')));
  }
  return {};
}
}  // namespace detail

}  // namespace strata::pjrt
