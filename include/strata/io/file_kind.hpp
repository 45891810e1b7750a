// The kind of a file, by its first bytes and not by its name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <strata/base/error.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/os.hpp>
#include <string_view>

namespace strata::io {

/// Throws strata_error that names the file if these are the first bytes of a Git LFS pointer: a small text that stands
/// for a large file in a repository.  https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
inline void refuse_lfs_pointer(const std::filesystem::path& path, std::span<const std::byte> first) {
  constexpr std::string_view begin = "version https://git-lfs.github.com/spec/v1";
  if (first.size() >= begin.size() && std::memcmp(first.data(), begin.data(), begin.size()) == 0)
    throw_error({path.string(), ": a Git LFS pointer instead of the file, which `git lfs pull` fetches"});
}
/// The overload for an open file; a file that cannot be read is left to the next read, which reports it.
inline void refuse_lfs_pointer(const std::filesystem::path& path, const file_descriptor& file) {
  std::byte first[64];
  const std::ptrdiff_t size = os::read_at(file.number(), first, sizeof first, 0);
  if (size > 0) refuse_lfs_pointer(path, std::span(first, std::size_t(size)));
}

enum class file_kind { other, hdf5, zip, gzip, safetensors, json };

/// The kind of a file of weights; `other` if it cannot be read. Throws strata_error for a Git LFS pointer.
inline file_kind kind_of_file(const std::filesystem::path& path) {
  const file_descriptor file(os::open(path, os::to_read | os::without_waiting));
  if (!file) return file_kind::other;
  refuse_lfs_pointer(path, file);
  char first[9] = {};
  const std::ptrdiff_t size = os::read_at(file.number(), first, sizeof first, 0);
  const std::string_view begin(first, size > 0 ? std::size_t(size) : 0);
  if (begin.starts_with("\x89HDF\r\n\x1a\n")) return file_kind::hdf5;
  if (begin.starts_with("PK\3\4")) return file_kind::zip;
  if (begin.starts_with("\x1f\x8b")) return file_kind::gzip;
  std::uint64_t header = 0;  // of a safetensors file: the size of its JSON header
  if (begin.size() == sizeof first) std::memcpy(&header, first, sizeof header);
  if (header > 100'000'000) return begin.starts_with('{') ? file_kind::json : file_kind::other;
  return begin.ends_with('{') ? file_kind::safetensors : file_kind::other;
}

}  // namespace strata::io
