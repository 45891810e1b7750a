// Common parts of fuzz targets: how a target is registered, files in memory, and checks of an input that was accepted.
#pragma once
#include <strata/io/file_descriptor.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::fuzz {

/// A parser under test, as a global object of its file. `read` gets an input and may throw strata_error to refuse it. Any
/// other exception, a crash, a leak, too much memory or time are findings; so is work per byte that grows with the input. `seeds`
/// are the first inputs. `larger` makes inputs with `count` of the elements that a file can have any number of; without it, only
/// the bytes after the first one of an input are repeated.
struct target {
  const char* name;
  std::vector<std::string> (*seeds)();
  void (*read)(std::string_view input);
  std::vector<std::string> (*larger)(int count) = nullptr;
  const target* next = std::exchange(first, this);

  static inline const target* first = nullptr;  // of the list of all targets
};

/// Ends the program unless a condition holds that is promised for accepted inputs.
inline void check(bool holds) {
  if (!holds) std::abort();
}
/// Calls f, which may not throw because the input has been accepted.
void accepted(auto&& f) noexcept { f(); }
/// Reads all bytes of a value, so that sanitizers check that they may be read.
inline void look_at(const void* at, std::size_t bytes) {
  std::uint8_t sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum = std::uint8_t(sum + static_cast<const std::uint8_t*>(at)[i]);
  asm volatile("" : : "r"(sum));
}
void look_at(const auto& range) { look_at(std::data(range), std::size(range) * sizeof *std::data(range)); }

/// The first byte of an input chooses what is done with the rest.
struct choice {
  unsigned number = 0;
  std::string_view rest;

  explicit choice(std::string_view input)
      : number(input.empty() ? 0 : std::uint8_t(input[0])), rest(input.substr(input.empty() ? 0 : 1)) {}
};
inline std::string with_choice(unsigned number, std::string_view rest) { return char(number) + std::string(rest); }

/// A file in memory.
class file {
  io::file_descriptor file_{::memfd_create("input", MFD_CLOEXEC)};

 public:
  explicit file(std::string_view content) {
    check(::write(file_.number(), content.data(), content.size()) == ::ssize_t(content.size()));
  }
  std::string folder() const { return "/proc/self/fd"; }
  std::string name() const { return std::to_string(file_.number()); }
  std::string path() const { return folder() + '/' + name(); }
};

/// A folder that is removed after the run.
inline std::filesystem::path folder() { return std::getenv("STRATA_FUZZ_FOLDER"); }

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// The bytes that write(path) writes into a file.
std::string written(auto&& write) {
  const std::filesystem::path path = folder() / "written";
  write(path);
  std::string content = content_of(path);
  std::filesystem::remove(path);
  return content;
}

template <class T>
std::string bytes_of(const T& range) {
  return {reinterpret_cast<const char*>(std::data(range)), std::size(range) * sizeof *std::data(range)};
}

}  // namespace strata::fuzz
