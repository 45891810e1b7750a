// Definitions of terminal.hpp.
#pragma once
#ifdef _WIN32
// As windows.h declares them, see os_windows.ipp.
struct _CONSOLE_SCREEN_BUFFER_INFO;
extern "C" {
__declspec(dllimport) void* __stdcall GetStdHandle(unsigned long);
__declspec(dllimport) int __stdcall GetConsoleMode(void*, unsigned long*);
__declspec(dllimport) int __stdcall SetConsoleMode(void*, unsigned long);
__declspec(dllimport) int __stdcall GetConsoleScreenBufferInfo(void*, _CONSOLE_SCREEN_BUFFER_INFO*);
}
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace strata::io {

#ifdef _WIN32
/// The layout of _CONSOLE_SCREEN_BUFFER_INFO.
struct console_information {
  short columns, lines, cursor[2];
  unsigned short colours;
  short left, top, right, bottom, largest[2];
};

STRATA_FUNCTION std::optional<int> terminal_columns(int file) {
  constexpr unsigned long understands_escapes = 4;
  void* const console =
      file == 1 ? ::GetStdHandle(static_cast<unsigned long>(-11)) : ::GetStdHandle(static_cast<unsigned long>(-12));
  unsigned long mode = 0;
  console_information all{};
  if (::GetConsoleMode(console, &mode) == 0 || ::SetConsoleMode(console, mode | understands_escapes) == 0) return {};
  if (::GetConsoleScreenBufferInfo(console, reinterpret_cast<_CONSOLE_SCREEN_BUFFER_INFO*>(&all)) == 0) return 0;
  return all.right - all.left + 1;
}

#else
STRATA_FUNCTION std::optional<int> terminal_columns(int file) {
  if (!::isatty(file)) return {};
  struct winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

#endif

}  // namespace strata::io
