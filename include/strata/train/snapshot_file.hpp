// How a snapshot differs from other safetensors files: it says what it is, and knows when it is damaged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <strata/data/crc32c.hpp>
#include <strata/data/mapped_file.hpp>
#include <string>
#include <string_view>

namespace strata {

namespace detail {

inline constexpr const char* snapshot_version_key = "strata_snapshot_version";
inline constexpr const char* snapshot_version = "1";
/// The last tensor, so that the last bytes of the file are the checksum of all bytes before them.
inline constexpr const char* checksum_tensor = "crc32c";
using checksum = std::uint32_t;
/// Of the tensors that the optimizer keeps: optimizer/0/dense/kernel.
inline constexpr std::string_view slot_prefix = "optimizer/";

/// Of all bytes before the one that the file ends with.
inline checksum checksum_of(std::span<const std::byte> file) { return data::crc32c(file.first(file.size() - sizeof(checksum))); }

}  // namespace detail

/// What is wrong with the bytes of a snapshot; empty if nothing is. Throws strata::error if it cannot be read at all.
inline std::string damage_of_snapshot(const std::filesystem::path& file) {
  const data::mapped_file mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  if (bytes.empty()) return "it is empty";
  if (bytes.size() < sizeof(std::uint64_t) + sizeof(detail::checksum)) return "it has only " + std::to_string(bytes.size()) + " bytes";
  detail::checksum stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - sizeof stored, sizeof stored);
  if (stored != detail::checksum_of(bytes)) return "its checksum is not that of its " + std::to_string(bytes.size()) + " bytes";
  return {};
}

}  // namespace strata
