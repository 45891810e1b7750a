// Definitions of os.hpp for POSIX.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <strata/base/environment.hpp>
#include <strata/base/text.hpp>

#ifdef __APPLE__
#include <crt_externs.h>  // a shared library cannot name the variable itself
#else
extern char** environ;  // POSIX, but in no header
#endif

namespace strata::io::os {

/// The variables of the environment.
inline char** environment() {
#ifdef __APPLE__
  return *::_NSGetEnviron();
#else
  return ::environ;
#endif
}

/// Repeats a call that a signal has interrupted.
template <class F>
auto uninterrupted(F&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

STRATA_FUNCTION int open(const std::filesystem::path& path, unsigned flags) {
  int all = O_CLOEXEC | ((flags & to_write) == 0 ? O_RDONLY : (flags & to_read) == 0 ? O_WRONLY : O_RDWR);
  for (const auto& [flag, more] : {std::pair<unsigned, int>{or_made, O_CREAT},
                                   {must_be_new, O_EXCL},
                                   {at_end, O_APPEND},
                                   {no_link, O_NOFOLLOW},
                                   {without_waiting, O_NONBLOCK | O_NOCTTY}})
    if ((flags & flag) != 0) all |= more;
  return ::open(path.c_str(), all, 0666);
}

/// The path under which a process reaches its own open file.
inline std::string own_name(int file) { return strata::detail::text_of({"/proc/self/fd/", file}); }

STRATA_FUNCTION int open_unnamed([[maybe_unused]] const std::filesystem::path& folder) {
#ifdef O_TMPFILE
  const int file = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (file < 0 || ::access(own_name(file).c_str(), F_OK) == 0) return file;
  ::close(file);  // without /proc it could never be named
#endif
  return -1;
}
STRATA_FUNCTION bool give_name(int file, const std::filesystem::path& to) {
  return ::linkat(AT_FDCWD, own_name(file).c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
}
STRATA_FUNCTION bool close(int file) { return ::close(file) == 0; }

STRATA_STEP_FUNCTION std::ptrdiff_t read(int file, void* to, std::size_t bytes) {
  return uninterrupted([&] { return ::read(file, to, bytes); });
}
STRATA_STEP_FUNCTION std::ptrdiff_t write(int file, const void* from, std::size_t bytes) {
  return uninterrupted([&] { return ::write(file, from, bytes); });
}
STRATA_STEP_FUNCTION std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t offset) {
  return uninterrupted([&] { return ::pread(file, to, bytes, static_cast<off_t>(offset)); });
}
STRATA_STEP_FUNCTION std::ptrdiff_t write_at(int file, const void* from, std::size_t bytes, std::uint64_t offset) {
  return uninterrupted([&] { return ::pwrite(file, from, bytes, static_cast<off_t>(offset)); });
}
STRATA_FUNCTION bool make_empty(int file) { return ::ftruncate(file, 0) == 0; }
STRATA_FUNCTION bool flush(int file) {
#ifdef F_FULLFSYNC
  // On macOS fsync leaves the bytes in the cache of the disk. Some file systems support fsync only.
  if (::fcntl(file, F_FULLFSYNC) == 0) return true;
#endif
  return ::fsync(file) == 0;
}
STRATA_FUNCTION void expect_all_in_order([[maybe_unused]] int file) {
#ifdef POSIX_FADV_SEQUENTIAL
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

inline bool convert(bool known, const struct stat& from, file_status& to) {
  if (!known) return false;
#ifdef __APPLE__
  const timespec modified = from.st_mtimespec;
#else
  const timespec modified = from.st_mtim;
#endif
  to = {.type = S_ISREG(from.st_mode)   ? file_type::regular
                : S_ISDIR(from.st_mode) ? file_type::folder
                : S_ISLNK(from.st_mode) ? file_type::link
                                        : file_type::other,
        .size = static_cast<std::uint64_t>(from.st_size),
        .device = static_cast<std::uint64_t>(from.st_dev),
        .number = static_cast<std::uint64_t>(from.st_ino),
        .names = static_cast<std::uint64_t>(from.st_nlink),
        .modified = std::int64_t{modified.tv_sec} * 1'000'000'000 + modified.tv_nsec,
        .permissions = static_cast<unsigned>(from.st_mode) & 07777u,
        .is_of_this_user = from.st_uid == ::geteuid()};
  return true;
}
STRATA_FUNCTION bool get_status(int file, file_status& status) {
  struct stat all{};
  return convert(::fstat(file, &all) == 0, all, status);
}
STRATA_FUNCTION bool get_status(const std::filesystem::path& path, file_status& status) {
  struct stat all{};
  return convert(::lstat(path.c_str(), &all) == 0, all, status);
}
STRATA_FUNCTION bool get_status_of_target(const std::filesystem::path& path, file_status& status) {
  struct stat all{};
  return convert(::stat(path.c_str(), &all) == 0, all, status);
}
STRATA_FUNCTION void set_permissions(int file, unsigned permissions) { (void)!::fchmod(file, static_cast<mode_t>(permissions)); }
STRATA_FUNCTION int is_open_to_others(int file) {
  file_status status;
  struct statvfs mounted{};
  if (!get_status(file, status) || ::fstatvfs(file, &mounted) != 0) return -1;
  return status.is_of_this_user && (status.permissions & 077) != 0 && (mounted.f_flag & ST_RDONLY) == 0;
}

STRATA_FUNCTION bool try_lock(int file) {
  return uninterrupted([&] { return ::flock(file, LOCK_EX | LOCK_NB); }) == 0;
}

STRATA_FUNCTION bool rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0;
}
STRATA_FUNCTION bool remove(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0; }
STRATA_FUNCTION bool flush_folder(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return true;  // some directories may not be read
  const int code = flush(file) ? 0 : errno;
  ::close(file);
  errno = code;
  return code == 0 || code == EINVAL || code == ENOTSUP || code == EROFS;  // some file systems cannot flush a directory
}

STRATA_FUNCTION void* map(int file, std::size_t bytes) {
  void* const first = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  return first == MAP_FAILED ? nullptr : first;
}
STRATA_FUNCTION void unmap(void* first, std::size_t bytes) { ::munmap(first, bytes); }
STRATA_FUNCTION void expect(void* first, std::size_t bytes, mapped_use use) {
  int advice = MADV_NORMAL;
  if (use == mapped_use::in_order) advice = MADV_SEQUENTIAL;
  if (use == mapped_use::scattered) advice = MADV_RANDOM;
  if (use == mapped_use::over) advice = MADV_DONTNEED;
#ifdef MADV_NOHUGEPAGE
  if (use == mapped_use::of_few_pages) advice = MADV_NOHUGEPAGE;
#endif
  (void)::madvise(first, bytes, advice);
}

STRATA_FUNCTION std::filesystem::path path_in_environment(const char* name) { return strata::detail::environment_variable(name); }
STRATA_FUNCTION long process_id() { return ::getpid(); }
STRATA_FUNCTION std::string host_name() {
  std::array<char, 256> name{};
  (void)!::gethostname(name.data(), name.size() - 1);
  return name.data();
}

STRATA_FUNCTION std::function<void()> watch_signal(int signal, void (*note)(int), bool only_once) {
  struct sigaction before{}, now{};
  ::sigaction(signal, nullptr, &before);
  if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN) return {};
  now.sa_handler = note;
  now.sa_flags = SA_RESTART;
  if (only_once) now.sa_flags |= static_cast<int>(SA_RESETHAND);
  sigemptyset(&now.sa_mask);
  ::sigaction(signal, &now, nullptr);
  return [signal, before] { ::sigaction(signal, &before, nullptr); };
}

STRATA_FUNCTION std::pair<int, std::string> run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int code = ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environment()); code != 0)
    return {-1, strata::detail::text_of({words[0], " cannot be run: ", std::strerror(code)})};
  int status = 0;
  if (uninterrupted([&] { return ::waitpid(child, &status, 0); }) < 0)
    return {-1, strata::detail::text_of({words[0], ": ", std::strerror(errno)})};
  if (WIFEXITED(status))
    return {WEXITSTATUS(status), strata::detail::text_of({words[0], " ended with status ", WEXITSTATUS(status)})};
  return {-1, strata::detail::text_of({words[0], " was ended by signal ", WTERMSIG(status)})};
}

}  // namespace strata::io::os
