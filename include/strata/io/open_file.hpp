// Opens files, and nothing that only stands in the place of one: a pipe, whose other end may never be opened, a device or a
// folder.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <strata/base/error.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/file_kind.hpp>
#include <string>
#include <string_view>

namespace strata::io {

namespace detail {
/// Never waits for the other end of a pipe. Throws strata::error for anything but a regular file.
inline file_descriptor open_regular(const std::filesystem::path& path, std::string_view what, int flags) {
  file_descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  struct stat status{};
  const auto refuse = [&](std::string_view why) { throw_error({"cannot ", what, ' ', path.string(), ": ", why}); };
  if (!file && errno == ELOOP && (flags & O_NOFOLLOW) != 0) refuse("a symbolic link is not followed there");
  if (!file && errno == ENXIO) refuse("not a regular file");  // a pipe, or the name of a socket
  if (!file || ::fstat(file.number(), &status) != 0) fail_on_file(what, path, errno);
  if (S_ISDIR(status.st_mode)) fail_on_file(what, path, EISDIR);
  if (!S_ISREG(status.st_mode)) refuse("not a regular file");
  if ((flags & O_NOFOLLOW) != 0 && status.st_nlink > 1 && status.st_uid != ::geteuid())
    refuse("it is a second name of a file of another user: remove it");
  return file;
}
}  // namespace detail

/// Opens a file for reading. Throws strata::error that names it if that fails, or if it is no regular file, or a Git LFS pointer.
inline file_descriptor open_to_read(const std::filesystem::path& path) {
  file_descriptor file = detail::open_regular(path, "read", O_RDONLY);
  refuse_lfs_pointer(path, file);
  return file;
}

/// Opens a file that only strata writes, under a name that it has chosen itself, such as a lock; makes it if it is missing.
/// Throws strata::error that names it if that fails, if it is no regular file, a symbolic link, or a second name of a file of
/// another user, so that nothing that belongs to others can be changed through it.
inline file_descriptor open_own(const std::filesystem::path& path, int flags = 0) {
  return detail::open_regular(path, "write", O_RDWR | O_CREAT | O_NOFOLLOW | flags);
}

/// Reads until `to` is full or the file ends; returns how many bytes. `path` is for errors.
inline std::size_t read_some(const file_descriptor& file, std::span<std::byte> to, const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = ::read(file.number(), to.data() + done, to.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_on_file("read", path, errno);
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

/// Reads the first `most` bytes of an open file into a vector or a string, whose memory is used again. `path` is for errors.
template <class Bytes>
void read_content(const file_descriptor& file, const std::filesystem::path& path, Bytes& bytes, std::size_t most) {
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) fail_on_file("read", path, errno);
  std::size_t done = 0, wanted = std::size_t(status.st_size) + 1;  // one more, so that a file as long as expected ends the loop
  do {
    bytes.resize(std::min(wanted, most));
    done += read_some(file, std::as_writable_bytes(std::span(bytes)).subspan(done), path);
    wanted = 2 * bytes.size();
  } while (done == bytes.size() && done < most);
  bytes.resize(done);
}
/// The same of a file by its name. Throws strata::error as open_to_read does.
template <class Bytes>
void read_content(const std::filesystem::path& path, Bytes& bytes, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  read_content(open_to_read(path), path, bytes, most);
}
inline std::string content_of(const std::filesystem::path& path, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::string text;
  read_content(path, text, most);
  return text;
}
/// The same for what nobody else may know. Throws strata::error also if this user's file can be read or changed by others, as ssh
/// does for a key. Who may read the file of another user is decided by that user, and who may read one on a file system without
/// writing, such as a Secret in a container, by whoever mounts it: its mode cannot be changed here.
inline std::string secret_content_of(const std::filesystem::path& path,
                                     std::size_t most = std::numeric_limits<std::size_t>::max()) {
  const file_descriptor file = open_to_read(path);
  struct stat status{};
  struct statvfs mounted{};
  if (::fstat(file.number(), &status) != 0 || ::fstatvfs(file.number(), &mounted) != 0) fail_on_file("read", path, errno);
  if (status.st_uid == ::geteuid() && (status.st_mode & 077) != 0 && (mounted.f_flag & ST_RDONLY) == 0)
    throw_error({path.string(), " is open to other users, which a secret must not be: chmod 600 ", path.string(),
                 ", or for a Secret of Kubernetes defaultMode: 0400"});
  std::string text;
  read_content(file, path, text, most);
  return text;
}

}  // namespace strata::io
