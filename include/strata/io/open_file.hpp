// Opens regular files only: no pipe, whose other end may never be opened, no device and no folder.
#pragma once
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
#include <strata/io/os.hpp>
#include <string>
#include <string_view>

namespace strata::io {

namespace detail {
/// Never waits for the other end of a pipe. Throws strata_error for anything but a regular file.
inline file_descriptor open_regular(const std::filesystem::path& path, std::string_view what, unsigned flags) {
  file_descriptor file(os::open(path, flags | os::without_waiting));
  os::file_status status;
  const auto refuse = [&](std::string_view why) { throw_error({"cannot ", what, ' ', path.string(), ": ", why}); };
  if (!file && errno == ELOOP && (flags & os::no_link) != 0) refuse("a symbolic link is not followed there");
  if (!file && errno == ENXIO) refuse("not a regular file");  // a pipe, or the name of a socket
  if (!file || !os::get_status(file.number(), status)) fail_on_file(what, path, errno);
  if (status.type == os::file_type::folder) fail_on_file(what, path, EISDIR);
  if (status.type != os::file_type::regular) refuse("not a regular file");
  if ((flags & os::no_link) != 0 && status.names > 1 && !status.is_of_this_user)
    refuse("it is a hard link to a file of another user: remove it");
  return file;
}
}  // namespace detail

/// Opens a file for reading. Throws strata_error that names it if that fails, or if it is no regular file, or a Git LFS
/// pointer.
inline file_descriptor open_to_read(const std::filesystem::path& path) {
  file_descriptor file = detail::open_regular(path, "read", os::to_read);
  refuse_lfs_pointer(path, file);
  return file;
}

/// Opens a file that only strata writes, under a name of its own choice, such as a lock; creates it if it is missing. Throws
/// strata_error naming the file if that fails, if it is not a regular file, if it is a symbolic link, or if it is a
/// second name of a file of another user, so that no file of others can be changed through it.
inline file_descriptor open_own(const std::filesystem::path& path, unsigned flags = 0) {
  return detail::open_regular(path, "write", os::to_read | os::to_write | os::or_made | os::no_link | flags);
}

/// Reads until `to` is full or the file ends; returns the number of bytes. `path` is for errors.
inline std::size_t read_some(const file_descriptor& file, std::span<std::byte> to, const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const std::ptrdiff_t n = os::read(file.number(), to.data() + done, to.size() - done);
    if (n < 0) fail_on_file("read", path, errno);
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

/// Reads the first `most` bytes of an open file into a vector or a string, whose memory is reused. `path` is for errors.
template <class Bytes>
void read_content(const file_descriptor& file, const std::filesystem::path& path, Bytes& bytes, std::size_t most) {
  os::file_status status;
  if (!os::get_status(file.number(), status)) fail_on_file("read", path, errno);
  std::size_t done = 0, wanted = std::size_t(status.size) + 1;  // one more, so that a file as long as expected ends the loop
  do {
    bytes.resize(std::min(wanted, most));
    done += read_some(file, std::as_writable_bytes(std::span(bytes)).subspan(done), path);
    wanted = 2 * bytes.size();
  } while (done == bytes.size() && done < most);
  bytes.resize(done);
}
/// The overload for a file by its name. Throws strata_error as open_to_read does.
template <class Bytes>
void read_content(const std::filesystem::path& path, Bytes& bytes, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  read_content(open_to_read(path), path, bytes, most);
}
inline std::string content_of(const std::filesystem::path& path, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::string text;
  read_content(path, text, most);
  return text;
}
/// The same for secrets. Throws strata_error also if this user's file can be read or changed by others, as ssh does for a
/// key. A file of another user is accepted, for whose mode its owner is responsible, and so is one on a read-only file system,
/// such as a Secret in a container: its mode cannot be changed here.
inline std::string secret_content_of(const std::filesystem::path& path,
                                     std::size_t most = std::numeric_limits<std::size_t>::max()) {
  const file_descriptor file = open_to_read(path);
  const int is_open = os::is_open_to_others(file.number());
  if (is_open < 0) fail_on_file("read", path, errno);
  if (is_open > 0)
    throw_error({path.string(), " can be accessed by other users, which is not allowed for a secret: chmod 600 ", path.string(),
                 ", or for a Secret of Kubernetes defaultMode: 0400"});
  std::string text;
  read_content(file, path, text, most);
  return text;
}

}  // namespace strata::io
