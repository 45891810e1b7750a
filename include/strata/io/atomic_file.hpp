// A file that is complete or absent: it is written without a name or under another one, flushed to the disk, then put at its
// place.
#pragma once
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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

/// While it lives, a write beyond the process' limit of file sizes (ulimit -f) fails with EFBIG. Otherwise the system would end
/// the process with SIGXFSZ. Keeps errno.
class without_size_signal {
  sigset_t before_{};
  bool active_ = false;

  static sigset_t only_that() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
  }

 public:
  without_size_signal() {
    struct rlimit most{};
    if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur == RLIM_INFINITY) return;
    const sigset_t set = only_that();
    sigset_t pending;
    sigpending(&pending);
    active_ = sigismember(&pending, SIGXFSZ) == 0 && ::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0;
  }
  without_size_signal(const without_size_signal&) = delete;
  without_size_signal& operator=(const without_size_signal&) = delete;
  ~without_size_signal() {
    if (!active_) return;
    const int code = errno;
    const sigset_t set = only_that();
    const timespec at_once{};
    while (::sigtimedwait(&set, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = code;
  }
};

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// Makes a rename or a new name in the folder of that file survive a crash of the machine.
inline void flush_folder_of(const std::filesystem::path& file) {
  const file_descriptor opened(::open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot flush a directory, and some directories may not be read.
  if (opened && ::fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
    fail_on_file("flush the directory of", file, errno);
}

/// Replaces `to` atomically; that survives a crash of the machine.
inline void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_on_file("write", to, errno);
  flush_folder_of(to);
}

namespace detail {
/// What the names of temporary files begin with.
inline constexpr std::string_view temporary_prefix = ".strata-";

/// Locks an open file until it is closed, also by the end of the process. Returns whether it could be locked.
inline bool try_lock(const file_descriptor& file) {
  int code;
  do code = ::flock(file.number(), LOCK_EX | LOCK_NB);
  while (code != 0 && errno == EINTR);
  return code == 0;
}

/// Removes temporary files in the folder that no process has locked: whoever wrote them is dead. Looks once per process.
inline void remove_what_the_dead_left(const std::filesystem::path& folder) {
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
    if (!path.filename().native().starts_with(temporary_prefix)) continue;
    const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file && try_lock(file)) ::unlink(path.c_str());
  }
}
}  // namespace detail

/// How a file that is being written is kept apart from others.
enum class unfinished_file {
  unnamed,  // it has no name until it is complete, where the file system can do that: nothing stays if the process is killed
  named     // .strata-<process>-<number>, locked; if the process is killed, the next that writes there removes it
};

/// Call write() with the contents, then commit(). Without commit, or if anything fails, an older file at that path is unchanged.
/// If the process is killed, nothing stays, or a temporary file that the next process that writes into the folder removes.
/// A replaced file keeps its permissions; a symbolic link is followed. All members throw strata::error with the path and the
/// message of the system.
class atomic_file {
  std::filesystem::path path_, temporary_;  // temporary_ is empty while the file has no name
  file_descriptor file_;

 public:
  explicit atomic_file(const std::filesystem::path& path, unfinished_file kind = unfinished_file::unnamed) : path_(path) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored))
      if (const auto target = std::filesystem::weakly_canonical(path_, ignored); !ignored) path_ = target;
    if (std::filesystem::is_directory(path_, ignored)) fail_on_file("write", path_, EISDIR);
    detail::remove_what_the_dead_left(folder_of(path_));
    if (kind == unfinished_file::named || !open_unnamed()) open_named();
    struct stat old{};
    if (::stat(path_.c_str(), &old) == 0) (void)!::fchmod(file_.number(), old.st_mode & 07777);
  }
  atomic_file(atomic_file&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}
  ~atomic_file() { remove_temporary(); }

  void write(std::span<const std::byte> bytes) {
    const without_size_signal guard;
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
    const without_size_signal guard;
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
    if (temporary_.empty() && !name(path_)) {
      if (errno != EEXIST) fail(errno);
      // Only a rename replaces a file, and it needs a name. The lock keeps others from removing it.
      (void)detail::try_lock(file_);
      const std::filesystem::path between = next_temporary([this](const std::filesystem::path& to) { return name(to); });
      if (between.empty()) fail(errno);
      temporary_ = between;
    }
    if (!temporary_.empty() && ::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
    temporary_.clear();
    if (const int code = file_.close()) fail(code);
    flush_folder_of(path_);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  /// Where a process finds its own open file.
  std::string own_name() const { return strata::detail::text_of({"/proc/self/fd/", file_.number()}); }
  /// Gives the file without a name this one. False, with errno, if it exists.
  bool name(const std::filesystem::path& to) const {
    return ::linkat(AT_FDCWD, own_name().c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
  /// Tries names until make(name) is true, and returns it; empty, with errno, if another thing than an existing file is in the
  /// way.
  template <class F>
  std::filesystem::path next_temporary(F&& make) const {
    static std::atomic<unsigned> number = 0;
    for (;;) {
      const std::filesystem::path path =
          path_.parent_path() / strata::detail::text_of({detail::temporary_prefix, ::getpid(), '-', number++});
      if (make(path)) return path;
      if (errno != EEXIST) return {};
    }
  }
  bool open_unnamed() {
#ifdef O_TMPFILE
    file_ = file_descriptor(::open(folder_of(path_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
    if (file_ && ::access(own_name().c_str(), F_OK) != 0) file_ = {};  // without /proc it could never get a name
#endif
    return bool(file_);
  }
  void open_named() {
    temporary_ = next_temporary([this](const std::filesystem::path& path) {
      file_ = file_descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!file_) return false;
      struct stat mine{};
      if (detail::try_lock(file_) || errno != EWOULDBLOCK)  // also where there are no locks
        if (::fstat(file_.number(), &mine) != 0 || mine.st_nlink > 0) return true;
      errno = EEXIST;  // another process has taken it for one that was left
      return false;
    });
    if (temporary_.empty()) fail_on_file("write", path_, errno);
  }
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
