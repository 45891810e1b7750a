// The operating system as the headers for one process call it, in a form for POSIX and one for Windows. The rooms io, data,
// network and train call it through these functions only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <strata/base/linkage.hpp>
#include <string>
#include <utility>
#include <vector>

/// Functions that fail return -1, false or null, and set errno.
namespace strata::io::os {

/// Flags of open; they are added.
enum open_flag : unsigned {
  to_read = 1,
  to_write = 2,
  or_made = 4,          // create it if it is missing
  must_be_new = 8,      // with or_made
  at_end = 16,          // all writes append
  no_link = 32,         // ELOOP if a symbolic link is at the end of the path. Windows follows it
  without_waiting = 64  // does not wait for the other end of a pipe
};

enum class file_type { regular, folder, link, other };

struct file_status {
  file_type type = file_type::other;
  std::uint64_t size = 0;
  std::uint64_t device = 0, number = 0;  // together they identify a file
  std::uint64_t names = 0;
  std::int64_t modified = 0;  // time of modification, in units of the system
  unsigned permissions = 0;   // POSIX permissions
  bool is_of_this_user = true;
};

/// A file descriptor. Bytes are read and written in binary mode, and child processes do not inherit it.
int open(const std::filesystem::path& path, unsigned flags);
/// Opens a new, unnamed file in the folder. Fails if the system does not support that.
int open_unnamed(const std::filesystem::path& folder);
/// Names an unnamed file.
bool give_name(int file, const std::filesystem::path& to);
/// Returns false if bytes written earlier could not be stored.
bool close(int file);

/// Returns the number of bytes, which may be fewer than requested; 0 at the end of the file.
std::ptrdiff_t read(int file, void* to, std::size_t bytes);
std::ptrdiff_t write(int file, const void* from, std::size_t bytes);
/// Reads at an offset, without changing the position of read and write.
std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t offset);
std::ptrdiff_t write_at(int file, const void* from, std::size_t bytes, std::uint64_t offset);
/// Truncates the file to zero bytes.
bool make_empty(int file);
/// When it returns, the content survives a crash of the machine.
bool flush(int file);
/// A hint that the file will be read from first to last.
void expect_all_in_order(int file);

/// The status of an open file.
bool get_status(int file, file_status& status);
/// The status of the file at the path, which may be a link itself.
bool get_status(const std::filesystem::path& path, file_status& status);
/// The status of the target of the path.
bool get_status_of_target(const std::filesystem::path& path, file_status& status);
/// Permissions as in file_status. Windows has other ones, which a new file inherits from its folder.
void set_permissions(int file, unsigned permissions);
/// Returns 1 if users other than the owner, who is this user, may read or change the file, on a file system that can be written;
/// 0 if not; -1 on failure. Always 0 on Windows.
int is_open_to_others(int file);

/// Locks the file until it is closed. If another process has locked it, errno is EWOULDBLOCK.
bool try_lock(int file);

/// Replaces `to`, if it exists, atomically. The rename survives a crash of the machine after flush_folder.
bool rename(const std::filesystem::path& from, const std::filesystem::path& to);
/// A file that is open may stay at its place until it is closed, on Windows.
bool remove(const std::filesystem::path& path);
/// When it returns, the names in the folder survive a crash of the machine.
bool flush_folder(const std::filesystem::path& folder);

/// Maps the first bytes of a file as readable memory.
void* map(int file, std::size_t bytes);
/// Unmaps the memory that map returned; `bytes` as for map.
void unmap(void* first, std::size_t bytes);
enum class mapped_use { usual, in_order, scattered, over, of_few_pages };
/// A hint on how the pages will be used.
void expect(void* first, std::size_t bytes, mapped_use use);

/// The path that an environment variable holds; empty if it is not set.
std::filesystem::path path_in_environment(const char* name);
/// The id of this process.
long process_id();
/// The name of this machine; empty if it has none.
std::string host_name();

/// Calls `note` at each such signal, or at the next one only. Returns a function that restores the former state. If the signal is
/// ignored, changes nothing and returns an empty function.
std::function<void()> watch_signal(int signal, void (*note)(int), bool only_once);

/// Runs a program of the PATH without a shell and waits for it. Returns its exit status and a description of it, or -1 and an
/// error of the system.
std::pair<int, std::string> run_program(std::vector<std::string> words);

}  // namespace strata::io::os

#if STRATA_DEFINES
#ifdef _WIN32
#include <strata/io/os_windows.ipp>
#else
#include <strata/io/os_posix.ipp>
#endif
#endif
