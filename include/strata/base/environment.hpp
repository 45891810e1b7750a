// Environment variables of this process.
#pragma once
#include <cstdlib>
#ifdef _WIN32
#include <filesystem>
#endif
#include <string>

namespace strata::detail {

/// Its value; empty if it is not set.
inline std::string environment_variable(const char* name) {
#ifdef _WIN32  // otherwise it would not be UTF-8, as paths are
  const wchar_t* const value = ::_wgetenv(std::filesystem::path(name).c_str());
  return value ? std::filesystem::path(value).string() : "";
#else
  const char* const value = std::getenv(name);
  return value ? value : "";
#endif
}

}  // namespace strata::detail
