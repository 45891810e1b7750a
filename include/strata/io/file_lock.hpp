// The lock of an open file.
#pragma once
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <strata/io/file_descriptor.hpp>

namespace strata::io {

/// Locks an open file until it is closed, also by the end of the process. Returns whether it could be locked; errno is
/// EWOULDBLOCK if another process has locked it, and another code where the file system knows no locks.
inline bool try_lock(const file_descriptor& file) {
  int code;
  do code = ::flock(file.number(), LOCK_EX | LOCK_NB);
  while (code != 0 && errno == EINTR);
  return code == 0;
}

/// Whether the path still leads to that open file: until it was locked, another process could remove or replace it.
inline bool is_still_at(const file_descriptor& file, const std::filesystem::path& path) {
  struct stat mine{}, there{};
  return ::fstat(file.number(), &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

}  // namespace strata::io
