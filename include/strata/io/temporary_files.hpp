// The names of unfinished files, and the removal of those whose process has ended.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_lock.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::io {

namespace detail {
/// The name of an unfinished file: .strata-<process>-<number>.
inline std::string temporary_name(long process, unsigned number) {
  return strata::detail::text_of({".strata-", process, '-', number});
}

/// Whether temporary_name makes such a name. Any other name, such as .strata-settings.json, is not strata's.
inline bool is_temporary_name(std::string_view name) {
  constexpr std::string_view beginning = ".strata-";
  if (!name.starts_with(beginning)) return false;
  name.remove_prefix(beginning.size());
  const auto take_number = [&] {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits > 0;
  };
  if (!take_number() || !name.starts_with('-')) return false;
  name.remove_prefix(1);
  return take_number() && name.empty();
}

/// Removes the temporary files in the folder that no process holds a lock on. Looks once per process and folder.
inline void remove_stale_temporaries(const std::filesystem::path& folder) {
  static std::mutex mutex;
  static std::vector<std::string> seen;
  static pid_t process = 0;
  {
    const std::unique_lock lock(mutex, std::try_to_lock);  // a thread that does not exist after a fork may have it
    if (!lock) return;
    if (std::exchange(process, ::getpid()) != ::getpid()) seen.clear();
    if (std::find(seen.begin(), seen.end(), folder.native()) != seen.end()) return;
    if (seen.size() == 1000) seen.clear();
    seen.push_back(folder.native());
  }
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::filesystem::path& path = at->path();
    if (!is_temporary_name(path.filename().native())) continue;
    const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    if (file && ::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode) && try_lock(file) && is_still_at(file, path))
      ::unlink(path.c_str());
  }
}
}  // namespace detail

}  // namespace strata::io
