// Where files go that may be made again.
#pragma once
#include <filesystem>
#include <strata/base/environment.hpp>

namespace strata::detail {

/// $XDG_CACHE_HOME if it is an absolute path, otherwise $HOME/.cache, or %LOCALAPPDATA% of Windows; empty if none is set.
/// Source: XDG Base Directory Specification, which ignores relative paths.
inline std::filesystem::path cache_folder() {
  if (std::filesystem::path cache = environment_variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache;
  const std::filesystem::path home = environment_variable("HOME");
  return home.empty() ? std::filesystem::path(environment_variable("LOCALAPPDATA")) : home / ".cache";
}

}  // namespace strata::detail
