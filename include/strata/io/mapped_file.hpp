// A file as read-only memory: the system reads a page at the first access.
#pragma once
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <utility>

namespace strata::io {

/// The bytes of a file, while the object lives. The file must not become shorter meanwhile: reading a missing part ends the
/// program. Replacing it by renaming, as atomic_file does, is safe. Throws strata_error naming the file if it cannot be
/// read.
class mapped_file {
 public:
  explicit mapped_file(std::filesystem::path path) : path_(std::move(path)) {
    const file_descriptor file = open_to_read(path_);
    os::file_status status;
    if (!os::get_status(file.number(), status)) fail_on_file("read", path_, errno);
    const std::size_t size = static_cast<std::size_t>(status.size);
    if (size == 0) return;  // an empty file cannot be mapped
    const void* const first = os::map(file.number(), size);
    if (first == nullptr) fail_on_file("map", path_, errno);
    bytes_ = {static_cast<const std::byte*>(first), size};
  }
  mapped_file(mapped_file&& other) noexcept : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_file() {
    if (!bytes_.empty()) os::unmap(address(), bytes_.size());
  }

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// A hint on how all pages will be used; it may fail.
  void expect(os::mapped_use use) const noexcept {
    if (!bytes_.empty()) os::expect(address(), bytes_.size(), use);
  }

 private:
  void* address() const { return const_cast<std::byte*>(bytes_.data()); }

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace strata::io
