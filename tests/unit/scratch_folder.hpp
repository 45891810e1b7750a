// A folder for the files of a test, deleted at the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <strata/io/os.hpp>
#include <string>
#include <vector>

namespace strata::test {

using bytes = std::vector<std::uint8_t>;

inline bytes operator+(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline bytes bytes_of(const std::string& text) { return bytes(text.begin(), text.end()); }

struct scratch_folder {
  std::filesystem::path path;

  explicit scratch_folder(const std::string& name) : scratch_folder(std::filesystem::temp_directory_path(), name) {}
  scratch_folder(const std::filesystem::path& parent, const std::string& name)
      : path(parent / ("strata-" + name + '-' + std::to_string(io::os::process_id()))) {
    std::filesystem::create_directories(path);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path); }

  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  std::filesystem::path write(const std::string& name, std::span<const std::uint8_t> content) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return path / name;
  }
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    return write(name, std::span(reinterpret_cast<const std::uint8_t*>(content.data()), content.size()));
  }
  bytes read(const std::string& name) const {
    std::ifstream file(path / name, std::ios::binary);
    return bytes(std::istreambuf_iterator<char>(file), {});
  }
  /// An error message without the folder.
  std::string without_folder(std::string text) const {
    const std::string folder = (path / "").string();
    for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) text.erase(at, folder.size());
    return text;
  }
};

}  // namespace strata::test
