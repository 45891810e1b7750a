// The names of unfinished files, and the removal of those whose process has ended.
#pragma once
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_lock.hpp>
#include <strata/io/os.hpp>
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

/// Whether the name has the form of temporary_name. Any other name, such as .strata-settings.json, is not strata's.
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

/// Removes the unlocked temporary files in the folder. Runs once per process and folder.
inline void remove_stale_temporaries(const std::filesystem::path& folder) {
  static std::mutex mutex;
  static std::vector<std::filesystem::path> seen;
  static long process = 0;
  {
    const std::unique_lock lock(mutex, std::try_to_lock);  // after a fork, a thread that no longer exists may hold it
    if (!lock) return;
    if (std::exchange(process, os::process_id()) != os::process_id()) seen.clear();
    if (std::find(seen.begin(), seen.end(), folder) != seen.end()) return;
    if (seen.size() == 1000) seen.clear();
    seen.push_back(folder);
  }
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::filesystem::path& path = at->path();
    if (!is_temporary_name(path.filename().string())) continue;
    const file_descriptor file(os::open(path, os::to_read | os::to_write | os::no_link | os::without_waiting));
    os::file_status status;
    if (file && os::get_status(file.number(), status) && status.type == os::file_type::regular && try_lock(file) &&
        is_still_at(file, path))
      os::remove(path);
  }
}
}  // namespace detail

}  // namespace strata::io
