// Reads a whole number from an environment variable.
#pragma once
#include <charconv>
#include <cstdlib>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string_view>
#include <system_error>

namespace strata::machine::detail {

/// Returns the whole number in the environment variable `name`, or `otherwise` if the variable is not set. Throws
/// strata_error if its text is not a whole number or is not within [least, most].
inline long from_environment(const char* name, long otherwise, long least, long most) {
  const char* const text = std::getenv(name);
  if (!text) return otherwise;
  long value = 0;
  const std::string_view all(text);
  const auto [end, code] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (code != std::errc() || end != all.data() + all.size() || value < least || value > most)
    throw_error({name, " is '", all, "', but must be a whole number from ", least, " to ", most});
  return value;
}

}  // namespace strata::machine::detail
