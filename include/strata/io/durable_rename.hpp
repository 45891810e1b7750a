// A rename that survives a crash of the machine.
#pragma once
#include <cerrno>
#include <filesystem>
#include <strata/io/file_error.hpp>
#include <strata/io/os.hpp>

namespace strata::io {

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// Flushes the folder of a file, so that a rename or a new name in it survives a crash of the machine.
inline void flush_folder_of(const std::filesystem::path& file) {
  if (!os::flush_folder(folder_of(file))) fail_on_file("flush the directory of", file, errno);
}

/// Replaces `to` atomically; that survives a crash of the machine.
inline void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (!os::rename(from, to)) fail_on_file("write", to, errno);
  flush_folder_of(to);
}

}  // namespace strata::io
