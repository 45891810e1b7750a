// A file that is complete or absent: it is written unnamed or under a temporary name, flushed to the disk, then renamed.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/durable_rename.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/file_lock.hpp>
#include <strata/io/os.hpp>
#include <strata/io/temporary_files.hpp>
#include <strata/io/without_size_signal.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata::io {

/// How an unfinished file is kept apart from others.
enum class unfinished_file {
  unnamed,  // without a name until it is complete, if the file system supports that: a killed process leaves nothing
  named     // .strata-<process>-<number>, locked; if the process is killed, the next writer in the folder removes it
};

/// What happens to a symbolic link at the path of a file that is written.
enum class existing_link {
  followed,  // for a path given by users: the target of the link is replaced
  replaced   // for a name chosen by strata: the file replaces the link
};

/// Call write() with the contents, then commit(). Without commit, or if anything fails, an older file at that path is unchanged.
/// A killed process leaves nothing, or a temporary file that the next writer in the folder removes. A replaced file keeps its
/// permissions; anything but a regular file, such as /dev/null, is not replaced. All members throw strata_error with the
/// path and the message of the system.
class atomic_file {
  std::filesystem::path path_, temporary_;  // temporary_ is empty while the file has no name
  file_descriptor file_;

 public:
  explicit atomic_file(const std::filesystem::path& path, unfinished_file kind = unfinished_file::unnamed,
                       existing_link link = existing_link::followed)
      : path_(path) {
    std::error_code ignored;
    // Follows the links one by one, because the target of the last one may not exist yet.
    for (int links = 0; link == existing_link::followed && std::filesystem::is_symlink(path_, ignored); ++links) {
      if (links == 40) fail_on_file("write", path, ELOOP);  // as many as Linux follows
      path_ = path_.parent_path() / std::filesystem::read_symlink(path_, ignored);
    }
    os::file_status old;
    const bool is_there = os::get_status(path_, old) && old.type != os::file_type::link;
    if (is_there && old.type == os::file_type::folder) fail_on_file("write", path_, EISDIR);
    if (is_there && old.type != os::file_type::regular) throw_error({"cannot write ", path_.string(), ": not a regular file"});
    detail::remove_stale_temporaries(folder_of(path_));
    if (kind == unfinished_file::named || !open_unnamed()) open_named();
    if (is_there) os::set_permissions(file_.number(), old.permissions);
  }
  atomic_file(atomic_file&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}
  ~atomic_file() { remove_temporary(); }

  void write(std::span<const std::byte> bytes) {
    write_all(bytes, [this](std::span<const std::byte> rest) { return os::write(file_.number(), rest.data(), rest.size()); });
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites bytes, such as a header that contains the size of what follows.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    write_all(bytes, [&](std::span<const std::byte> rest) {
      const std::size_t done = bytes.size() - rest.size();
      return os::write_at(file_.number(), rest.data(), rest.size(), offset + done);
    });
  }

  /// When it returns, the file is at its place and survives a crash of the machine.
  void commit() {
    if (!os::flush(file_.number())) fail(errno);
    if (temporary_.empty() && !name(path_)) {
      if (errno != EEXIST) fail(errno);
      // Only a rename replaces a file, and it needs a name. The lock keeps others from removing it.
      (void)try_lock(file_);
      const std::filesystem::path between = next_temporary([this](const std::filesystem::path& to) { return name(to); });
      if (between.empty()) fail(errno);
      temporary_ = between;
    }
    if (!temporary_.empty() && !os::rename(temporary_, path_)) fail(errno);
    temporary_.clear();
    if (const int code = file_.close()) fail(code);
    flush_folder_of(path_);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  /// Calls write_some(rest), which returns the number of bytes written or -1, until nothing is left.
  template <class F>
  void write_all(std::span<const std::byte> rest, F&& write_some) {
    const without_size_signal guard;
    while (!rest.empty()) {
      const std::ptrdiff_t n = write_some(rest);
      if (n < 0) fail(errno);
      rest = rest.subspan(std::size_t(n));
    }
  }
  /// Names the unnamed file. Returns false, with errno, if the name exists.
  bool name(const std::filesystem::path& to) const { return os::give_name(file_.number(), to); }
  /// Tries names until make(name) is true, and returns that name; empty, with errno, after any failure other than an existing
  /// file.
  template <class F>
  std::filesystem::path next_temporary(F&& make) const {
    static std::atomic<unsigned> number = 0;
    for (;;) {
      const std::filesystem::path path = path_.parent_path() / detail::temporary_name(os::process_id(), number++);
      if (make(path)) return path;
      if (errno != EEXIST) return {};
    }
  }
  bool open_unnamed() {
    file_ = file_descriptor(os::open_unnamed(folder_of(path_)));
    return bool(file_);
  }
  void open_named() {
    temporary_ = next_temporary([this](const std::filesystem::path& path) {
      file_ = file_descriptor(os::open(path, os::to_write | os::or_made | os::must_be_new));
      if (!file_) return false;
      if ((try_lock(file_) || errno != EWOULDBLOCK) && is_still_at(file_, path)) return true;  // also where there are no locks
      errno = EEXIST;  // another process has removed it as stale
      return false;
    });
    if (temporary_.empty()) fail_on_file("write", path_, errno);
  }
  void remove_temporary() noexcept {
    if (!temporary_.empty()) os::remove(temporary_);
    temporary_.clear();
  }
  [[noreturn]] void fail(int code) {
    remove_temporary();
    fail_on_file("write", path_, code);
  }
};

/// Writes a whole file.
inline void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  atomic_file file(path);
  file.write(text);
  file.commit();
}

}  // namespace strata::io
