// What the headers for one process ask of the operating system, with one form for POSIX and one for Windows. Those of io, data,
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

/// How a file is opened; they are added.
enum open_flag : unsigned {
  to_read = 1,
  to_write = 2,
  or_made = 4,          // if it is missing
  must_be_new = 8,      // with or_made
  at_end = 16,          // is where all writes go
  no_link = 32,         // ELOOP if a symbolic link is at the end of the path. Windows follows it
  without_waiting = 64  // for the other end of a pipe
};

enum class file_type { regular, folder, link, other };

struct file_status {
  file_type type = file_type::other;
  std::uint64_t size = 0;
  std::uint64_t device = 0, number = 0;  // both together are those of no other file
  std::uint64_t names = 0;
  std::int64_t modified = 0;  // when, in steps of the system
  unsigned permissions = 0;   // of POSIX
  bool is_of_this_user = true;
};

/// A file descriptor. Bytes are read and written as they are, and programs that are started do not inherit it.
int open(const std::filesystem::path& path, unsigned flags);
/// A new file in the folder that has no name yet. Fails where the system has no such files.
int open_unnamed(const std::filesystem::path& folder);
/// Gives a file without a name this one.
bool give_name(int file, const std::filesystem::path& to);
/// False if bytes that were written before could not be stored.
bool close(int file);

/// How many bytes, which may be fewer than asked for; 0 at the end of the file.
std::ptrdiff_t read(int file, void* to, std::size_t bytes);
std::ptrdiff_t write(int file, const void* from, std::size_t bytes);
/// The same from a byte of the file on. Where read and write go on does not change.
std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t offset);
std::ptrdiff_t write_at(int file, const void* from, std::size_t bytes, std::uint64_t offset);
/// Removes all bytes.
bool make_empty(int file);
/// When it returns, the content survives a crash of the machine.
bool flush(int file);
/// A hint that the file will be read from first to last.
void expect_all_in_order(int file);

/// Of an open file.
bool get_status(int file, file_status& status);
/// Of what is at the path, which may be a link itself.
bool get_status(const std::filesystem::path& path, file_status& status);
/// Of what the path leads to.
bool get_status_of_target(const std::filesystem::path& path, file_status& status);
/// As in file_status. Windows has other ones, which a new file takes from its folder.
void set_permissions(int file, unsigned permissions);
/// 1 if others than its owner, who is this user, may read or change the file, on a file system that can be written; 0 if not; -1.
/// On Windows always 0.
int is_open_to_others(int file);

/// Until the file is closed. If another process has locked it, errno is EWOULDBLOCK.
bool try_lock(int file);

/// Replaces `to`, if it is there, at once. It survives a crash of the machine after flush_folder.
bool rename(const std::filesystem::path& from, const std::filesystem::path& to);
/// A file that is open may stay at its place until it is closed, on Windows.
bool remove(const std::filesystem::path& path);
/// When it returns, the names in the folder survive a crash of the machine.
bool flush_folder(const std::filesystem::path& folder);

/// The first bytes of a file as memory that can be read.
void* map(int file, std::size_t bytes);
/// With what map returned, and as many bytes.
void unmap(void* first, std::size_t bytes);
enum class mapped_use { usual, in_order, scattered, over, of_few_pages };
/// A hint how they will be used.
void expect(void* first, std::size_t bytes, mapped_use use);

/// The path that an environment variable holds; empty if it is not set.
std::filesystem::path path_in_environment(const char* name);
/// The number of this process.
long process_id();
/// The name of this machine; empty if it has none.
std::string host_name();

/// Calls `note` at each such signal, or at the next one only. Returns what restores the former state; nothing, and changes
/// nothing, if the signal is ignored.
std::function<void()> watch_signal(int signal, void (*note)(int), bool only_once);

/// Runs a program of the PATH without a shell and waits for it. Returns its exit status and a sentence about it, or -1 and an
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
