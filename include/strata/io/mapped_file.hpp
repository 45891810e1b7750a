// A file as read-only memory: the system reads a page at the first access.
#pragma once
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <utility>

namespace strata::io {

/// The bytes of a file, while the object lives. The file must not become shorter meanwhile: reading a missing part ends the
/// program. Replacing it by renaming, as atomic_file does, is safe. Throws strata::error naming the file if it cannot be read.
class mapped_file {
 public:
  explicit mapped_file(std::filesystem::path path) : path_(std::move(path)) {
    const file_descriptor file = open_to_read(path_);
    struct stat status{};
    if (::fstat(file.number(), &status) != 0) fail_on_file("read", path_, errno);
    const std::size_t size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return;  // nothing that could be mapped
    void* first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (first == MAP_FAILED) fail_on_file("map", path_, errno);
    bytes_ = {static_cast<const std::byte*>(first), size};
  }
  mapped_file(mapped_file&& other) noexcept : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_file() {
    if (!bytes_.empty()) ::munmap(address(), bytes_.size());
  }

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Calls madvise(2) for all pages, for example with MADV_RANDOM or MADV_DONTNEED. A hint: it may fail.
  void advise(int advice) const noexcept {
    if (!bytes_.empty()) (void)::madvise(address(), bytes_.size(), advice);
  }

 private:
  void* address() const { return const_cast<std::byte*>(bytes_.data()); }

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace strata::io
