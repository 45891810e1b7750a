// The lock of an open file.
#pragma once
#include <filesystem>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/os.hpp>

namespace strata::io {

/// Locks an open file until it is closed, also by the end of the process. Returns whether it could be locked; errno is
/// EWOULDBLOCK if another process has locked it, and another code if the file system does not support locks.
inline bool try_lock(const file_descriptor& file) { return os::try_lock(file.number()); }

/// Whether the path still leads to that open file: until it was locked, another process could remove or replace it.
inline bool is_still_at(const file_descriptor& file, const std::filesystem::path& path) {
  os::file_status mine, there;
  return os::get_status(file.number(), mine) && os::get_status(path, there) && mine.device == there.device &&
         mine.number == there.number;
}

}  // namespace strata::io
