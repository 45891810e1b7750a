// The folder for files that can be made again.
#pragma once
#include <filesystem>
#include <strata/io/os.hpp>

namespace strata::detail {

/// $XDG_CACHE_HOME if it is an absolute path, otherwise $HOME/.cache, or %LOCALAPPDATA% of Windows; empty if none is set.
/// Source: XDG Base Directory Specification, which ignores relative paths.
inline std::filesystem::path cache_folder() {
  if (std::filesystem::path cache = io::os::path_in_environment("XDG_CACHE_HOME"); cache.is_absolute()) return cache;
  const std::filesystem::path home = io::os::path_in_environment("HOME");
  return home.empty() ? io::os::path_in_environment("LOCALAPPDATA") : home / ".cache";
}

}  // namespace strata::detail
