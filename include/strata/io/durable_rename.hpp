// A rename that survives a crash of the machine.
#pragma once
#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/flush.hpp>

namespace strata::io {

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// Makes a rename or a new name in the folder of that file survive a crash of the machine.
inline void flush_folder_of(const std::filesystem::path& file) {
  const file_descriptor opened(::open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot flush a directory, and some directories may not be read.
  if (opened && !flush_to_disk(opened) && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
    fail_on_file("flush the directory of", file, errno);
}

/// Replaces `to` atomically; that survives a crash of the machine.
inline void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_on_file("write", to, errno);
  flush_folder_of(to);
}

}  // namespace strata::io
