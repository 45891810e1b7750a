// Definitions of os.hpp for Windows.
#pragma once
#include <fcntl.h>
#include <io.h>
#include <process.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <strata/base/environment.hpp>
#include <strata/base/text.hpp>
#include <system_error>
#include <thread>

// As windows.h declares them, which a program may include as well. It is not included here: it defines macros such as `near`.
struct _SECURITY_ATTRIBUTES;
struct _OVERLAPPED;
struct _BY_HANDLE_FILE_INFORMATION;
extern "C" {
__declspec(dllimport) void* __stdcall CreateFileW(const wchar_t*, unsigned long, unsigned long, _SECURITY_ATTRIBUTES*,
                                                  unsigned long, unsigned long, void*);
__declspec(dllimport) int __stdcall CloseHandle(void*);
__declspec(dllimport) int __stdcall ReadFile(void*, void*, unsigned long, unsigned long*, _OVERLAPPED*);
__declspec(dllimport) int __stdcall WriteFile(void*, const void*, unsigned long, unsigned long*, _OVERLAPPED*);
__declspec(dllimport) int __stdcall GetFileInformationByHandle(void*, _BY_HANDLE_FILE_INFORMATION*);
__declspec(dllimport) unsigned long __stdcall GetFileType(void*);
__declspec(dllimport) unsigned long __stdcall GetFileAttributesW(const wchar_t*);
__declspec(dllimport) int __stdcall LockFile(void*, unsigned long, unsigned long, unsigned long, unsigned long);
__declspec(dllimport) int __stdcall MoveFileExW(const wchar_t*, const wchar_t*, unsigned long);
__declspec(dllimport) int __stdcall DeleteFileW(const wchar_t*);
__declspec(dllimport) void* __stdcall CreateFileMappingW(void*, _SECURITY_ATTRIBUTES*, unsigned long, unsigned long,
                                                         unsigned long, const wchar_t*);
__declspec(dllimport) void* __stdcall MapViewOfFile(void*, unsigned long, unsigned long, unsigned long, std::size_t);
__declspec(dllimport) int __stdcall UnmapViewOfFile(const void*);
__declspec(dllimport) int __stdcall VirtualUnlock(void*, std::size_t);
__declspec(dllimport) unsigned long __stdcall GetLastError();
}

namespace strata::io::os {

/// The layouts of _OVERLAPPED and _BY_HANDLE_FILE_INFORMATION.
struct place_in_file {
  std::uintptr_t internal[2];
  unsigned long low, high;
  void* event;
};
struct handle_information {
  unsigned long attributes, created[2], accessed[2], written[2], volume, size_high, size_low, names, number_high, number_low;
};

inline constexpr unsigned long no_attributes = ~0ul, is_folder = 0x10, only_on_disk = 1, access_denied = 5,
                               sharing_violation = 32, lock_violation = 33;

/// Sets errno for the last error of the system.
inline void set_errno() {
  const auto code = static_cast<int>(::GetLastError());
  const std::error_condition known = std::system_category().default_error_condition(code);
  errno = known.category() == std::generic_category() ? known.value() : EIO;
}
inline bool succeeded(int result) {
  if (result == 0) set_errno();
  return result != 0;
}
/// Repeats a call that fails while another program has the file open, or until a removed file is closed.
template <class F>
auto patiently(F&& call) {
  for (int left = 50;; --left) {
    const auto result = call();
    const unsigned long code = result ? 0 : ::GetLastError();
    if (result || left == 0 || (code != access_denied && code != sharing_violation)) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

inline void* handle_of(int file) { return reinterpret_cast<void*>(::_get_osfhandle(file)); }
inline bool is_at_folder(const std::filesystem::path& path) {
  const unsigned long attributes = ::GetFileAttributesW(path.c_str());
  return attributes != no_attributes && (attributes & is_folder) != 0;
}
/// Opens a file that others may read, write, rename and remove meanwhile, as on POSIX. Null, with the last error, on failure.
inline void* open_handle(const std::filesystem::path& path, unsigned long access, unsigned long disposition,
                         unsigned long flags) {
  void* const handle = ::CreateFileW(path.c_str(), access, 7, nullptr, disposition, flags, nullptr);
  return handle == reinterpret_cast<void*>(std::intptr_t{-1}) ? nullptr : handle;
}

STRATA_FUNCTION int open(const std::filesystem::path& path, unsigned flags) {
  if (is_at_folder(path)) return errno = EISDIR, -1;
  constexpr unsigned long reading = 0x80000000ul, writing = 0x40000000ul, usual = 0x80;
  constexpr unsigned long create_new = 1, open_existing = 3, open_always = 4;
  const unsigned long access = ((flags & to_read) != 0 ? reading : 0) | ((flags & to_write) != 0 ? writing : 0);
  const unsigned long disposition = (flags & must_be_new) != 0 ? create_new
                                    : (flags & or_made) != 0   ? open_always
                                                               : open_existing;
  void* const handle = patiently([&] { return open_handle(path, access, disposition, usual); });
  if (!succeeded(handle != nullptr)) return -1;
  const int file = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(handle),
                                     _O_BINARY | _O_NOINHERIT | ((flags & at_end) != 0 ? _O_APPEND : 0));
  if (file < 0) ::CloseHandle(handle);
  return file;
}
STRATA_FUNCTION int open_unnamed(const std::filesystem::path&) { return errno = ENOTSUP, -1; }
STRATA_FUNCTION bool give_name(int, const std::filesystem::path&) { return errno = ENOTSUP, false; }
STRATA_FUNCTION bool close(int file) { return ::_close(file) == 0; }

/// The most bytes that are passed to one call.
inline unsigned long at_most(std::size_t bytes) { return static_cast<unsigned long>(std::min(bytes, std::size_t{1} << 30)); }

STRATA_FUNCTION std::ptrdiff_t read(int file, void* to, std::size_t bytes) { return ::_read(file, to, at_most(bytes)); }
STRATA_FUNCTION std::ptrdiff_t write(int file, const void* from, std::size_t bytes) {
  return ::_write(file, from, at_most(bytes));
}

/// Reads or writes at an offset. The system also moves the file position, which is therefore restored.
template <class F>
std::ptrdiff_t at_offset(int file, std::uint64_t offset, F&& call) {
  constexpr unsigned long end_of_file = 38;
  place_in_file place{{}, static_cast<unsigned long>(offset), static_cast<unsigned long>(offset >> 32), nullptr};
  unsigned long done = 0;
  const auto before = ::_lseeki64(file, 0, SEEK_CUR);
  const int result = call(handle_of(file), &done, reinterpret_cast<_OVERLAPPED*>(&place));
  if (result == 0 && ::GetLastError() != end_of_file) return set_errno(), -1;
  (void)::_lseeki64(file, before, SEEK_SET);
  return static_cast<std::ptrdiff_t>(done);
}
STRATA_FUNCTION std::ptrdiff_t read_at(int file, void* to, std::size_t bytes, std::uint64_t offset) {
  return at_offset(file, offset, [&](void* handle, unsigned long* done, _OVERLAPPED* place) {
    return ::ReadFile(handle, to, at_most(bytes), done, place);
  });
}
STRATA_FUNCTION std::ptrdiff_t write_at(int file, const void* from, std::size_t bytes, std::uint64_t offset) {
  return at_offset(file, offset, [&](void* handle, unsigned long* done, _OVERLAPPED* place) {
    return ::WriteFile(handle, from, at_most(bytes), done, place);
  });
}
STRATA_FUNCTION bool make_empty(int file) { return ::_chsize_s(file, 0) == 0; }
STRATA_FUNCTION bool flush(int file) { return ::_commit(file) == 0; }
STRATA_FUNCTION void expect_all_in_order(int) {}

inline bool get_status_of_handle(void* handle, file_status& status) {
  handle_information all{};
  if (::GetFileType(handle) != only_on_disk) return status = {}, true;
  if (!succeeded(::GetFileInformationByHandle(handle, reinterpret_cast<_BY_HANDLE_FILE_INFORMATION*>(&all)))) return false;
  const auto both = [](unsigned long high, unsigned long low) { return std::uint64_t{high} << 32 | low; };
  status = {.type = (all.attributes & is_folder) != 0 ? file_type::folder : file_type::regular,
            .size = both(all.size_high, all.size_low),
            .device = all.volume,
            .number = both(all.number_high, all.number_low),
            .names = all.names,
            .modified = static_cast<std::int64_t>(both(all.written[1], all.written[0]))};
  return true;
}
inline bool get_status_of_path(const std::filesystem::path& path, unsigned long flags, file_status& status) {
  void* const handle = open_handle(path, 0, 3, flags);
  if (!succeeded(handle != nullptr)) return false;
  const bool known = get_status_of_handle(handle, status);
  ::CloseHandle(handle);
  return known;
}
STRATA_FUNCTION bool get_status(int file, file_status& status) { return get_status_of_handle(handle_of(file), status); }
STRATA_FUNCTION bool get_status(const std::filesystem::path& path, file_status& status) {
  std::error_code unknown;
  if (!get_status_of_path(path, 0x02200000, status)) return false;  // with flags that also open a folder, or a link itself
  if (std::filesystem::is_symlink(path, unknown)) status.type = file_type::link;
  return true;
}
STRATA_FUNCTION bool get_status_of_target(const std::filesystem::path& path, file_status& status) {
  return get_status_of_path(path, 0x02000000, status);
}
STRATA_FUNCTION void set_permissions(int, unsigned) {}
STRATA_FUNCTION int is_open_to_others(int) { return 0; }

/// Locks a byte beyond the end of any file: others could not read locked bytes.
STRATA_FUNCTION bool try_lock(int file) {
  const bool locked = succeeded(::LockFile(handle_of(file), 0, 0x7FFFFFFF, 1, 0));
  if (!locked && ::GetLastError() == lock_violation) errno = EWOULDBLOCK;
  return locked;
}

STRATA_FUNCTION bool rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  constexpr unsigned long replace_existing = 1, write_through = 8;
  return succeeded(patiently([&] { return ::MoveFileExW(from.c_str(), to.c_str(), replace_existing | write_through); }));
}
STRATA_FUNCTION bool remove(const std::filesystem::path& path) { return succeeded(::DeleteFileW(path.c_str())); }
STRATA_FUNCTION bool flush_folder(const std::filesystem::path&) { return true; }  // rename flushes it

STRATA_FUNCTION void* map(int file, std::size_t bytes) {
  constexpr unsigned long only_read = 2, to_be_read = 4;
  void* const mapping = ::CreateFileMappingW(handle_of(file), nullptr, only_read, 0, 0, nullptr);
  void* const first = mapping != nullptr ? ::MapViewOfFile(mapping, to_be_read, 0, 0, bytes) : nullptr;
  if (first == nullptr) set_errno();
  if (mapping != nullptr) ::CloseHandle(mapping);  // the view keeps the mapping
  return first;
}
STRATA_FUNCTION void unmap(void* first, std::size_t) { ::UnmapViewOfFile(first); }
STRATA_FUNCTION void expect(void* first, std::size_t bytes, mapped_use use) {
  if (use == mapped_use::over)
    (void)::VirtualUnlock(first, bytes);  // pages that were never locked leave the memory of the process
}

STRATA_FUNCTION std::filesystem::path path_in_environment(const char* name) {
  const wchar_t* const value = ::_wgetenv(std::filesystem::path(name).c_str());
  return value ? value : L"";
}
STRATA_FUNCTION long process_id() { return ::_getpid(); }
STRATA_FUNCTION std::string host_name() { return strata::detail::environment_variable("COMPUTERNAME"); }

/// The state of watch_signal. The system resets a handler when it calls it.
struct watched_signal {
  void (*note)(int) = nullptr;
  bool only_once = false;
};
inline watched_signal watched_signals[NSIG];
inline void on_signal(int signal) {
  if (!watched_signals[signal].only_once) std::signal(signal, on_signal);
  watched_signals[signal].note(signal);
}
STRATA_FUNCTION std::function<void()> watch_signal(int signal, void (*note)(int), bool only_once) {
  const auto before = std::signal(signal, SIG_IGN);
  if (before == SIG_IGN) return {};
  watched_signals[signal] = {note, only_once};
  std::signal(signal, on_signal);
  return [signal, before] { std::signal(signal, before); };
}

STRATA_FUNCTION std::pair<int, std::string> run_program(std::vector<std::string> words) {
  std::vector<std::wstring> quoted;  // the program receives one line, which it splits
  std::vector<const wchar_t*> arguments;
  const auto wide = [](const std::string& word) {
    return std::filesystem::path(std::u8string(word.begin(), word.end())).wstring();
  };
  for (const std::string& word : words) quoted.push_back(word.find(' ') == word.npos ? wide(word) : L'"' + wide(word) + L'"');
  for (const std::wstring& word : quoted) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  const auto status = ::_wspawnvp(_P_WAIT, wide(words[0]).c_str(), arguments.data());
  if (status == -1) return {-1, strata::detail::text_of({words[0], " cannot be run: ", std::generic_category().message(errno)})};
  return {static_cast<int>(status), strata::detail::text_of({words[0], " ended with status ", static_cast<int>(status)})};
}

}  // namespace strata::io::os
