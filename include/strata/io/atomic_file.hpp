// A file that is complete or absent: it is written under another name, flushed to the disk, then renamed.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace strata::io {

/// Throws strata::error, for example "cannot write /data/model: No space left on device".
[[noreturn]] inline void fail_on_file(std::string_view what, const std::filesystem::path& path, int code) {
  throw_error({"cannot ", what, ' ', path.string(), ": ", std::generic_category().message(code)});
}

/// An open file, which the destructor closes.
class file_descriptor {
  int number_ = -1;

 public:
  file_descriptor() = default;
  explicit file_descriptor(int number) : number_(number) {}
  file_descriptor(file_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~file_descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Returns 0 or the error code: some file systems report a failed write only here.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }
};

/// Call write() with the contents, then commit(). Without commit, or if anything fails, an older file at that path is unchanged.
/// A replaced file keeps its permissions; a symbolic link is followed. All members throw strata::error with the path and the
/// message of the system.
class atomic_file {
  std::filesystem::path path_, temporary_;
  file_descriptor file_;

 public:
  explicit atomic_file(const std::filesystem::path& path) : path_(path) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored))
      if (const auto target = std::filesystem::weakly_canonical(path_, ignored); !ignored) path_ = target;
    if (std::filesystem::is_directory(path_, ignored)) fail_on_file("write", path_, EISDIR);
    static std::atomic<unsigned> number = 0;
    const std::string prefix = strata::detail::text_of({".strata-", ::getpid(), '-'});
    do {
      temporary_ = path_.parent_path() / strata::detail::text_of({prefix, number++});
      file_ = file_descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (!file_ && errno == EEXIST);
    if (!file_) {
      temporary_.clear();
      fail_on_file("write", path_, errno);
    }
    struct stat old{};
    if (::stat(path_.c_str(), &old) == 0) (void)!::fchmod(file_.number(), old.st_mode & 07777);
  }
  atomic_file(atomic_file&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}
  ~atomic_file() { remove_temporary(); }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.number(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      bytes = bytes.subspan(std::size_t(n));
    }
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Writes over bytes that have been written, such as a header that counts what follows.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(file_.number(), bytes.data(), bytes.size(), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      bytes = bytes.subspan(std::size_t(n));
      offset += std::uint64_t(n);
    }
  }

  /// When it returns, the file is at its place and survives a crash of the machine.
  void commit() {
    if (::fsync(file_.number()) != 0) fail(errno);
    if (const int code = file_.close()) fail(code);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
    temporary_.clear();
    const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
    const file_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems cannot flush a directory, and some directories may not be read.
    if (opened && ::fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
      fail_on_file("flush the directory of", path_, errno);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  void remove_temporary() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
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
