// The parts of a snapshot that other safetensors files lack: a version and a checksum.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/crc32c.hpp>
#include <strata/io/mapped_file.hpp>
#include <strata/io/snapshot_files.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace strata {

namespace detail {

inline constexpr const char* snapshot_version_key = "strata_snapshot_version";
inline constexpr const char* snapshot_version = "2";
inline constexpr const char* arithmetic_key = "strata_arithmetic";
/// The name of the last tensor: the last bytes of the file are the checksum of all bytes before them.
inline constexpr const char* checksum_tensor = "crc32c";
using checksum = std::uint32_t;
/// The prefix of the names of the optimizer's slots: optimizer/0/dense/kernel.
inline constexpr std::string_view slot_prefix = "optimizer/";
/// The prefix of the names of arrays that callbacks keep: callback/early_stopping/0/dense/kernel.
inline constexpr std::string_view callback_prefix = "callback/";

/// The file of the previous snapshot: backup_and_restore keeps it besides `newest`.
inline std::filesystem::path snapshot_before(const std::filesystem::path& newest) {
  return io::snapshot_files(newest).previous();
}

/// The checksum of all bytes of the file except the stored checksum at its end.
inline checksum checksum_of(std::span<const std::byte> file) { return io::crc32c(file.first(file.size() - sizeof(checksum))); }

}  // namespace detail

namespace core {
/// Describes the damage of a snapshot; empty if there is none. Throws strata_error if the file cannot be read.
inline std::string damage_of_snapshot(const std::filesystem::path& file) {
  if (std::error_code unknown; std::filesystem::is_directory(file, unknown)) return "it is a folder";
  const io::mapped_file mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  if (bytes.empty()) return "it is empty";
  if (bytes.size() < sizeof(std::uint64_t) + sizeof(detail::checksum))
    return detail::text_of({"it has only ", bytes.size(), " bytes"});
  detail::checksum stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  if (stored != detail::checksum_of(bytes)) return detail::text_of({"its checksum is not that of its ", bytes.size(), " bytes"});
  return {};
}
}  // namespace core

}  // namespace strata
