// Reads a raw or gzipped file from first to last. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/inflater.hpp>
#include <strata/io/open_file.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::io {

/// A file, decompressed if it is gzipped. Errors name the file and the offset in the (decompressed) data. Data that expand to
/// more than `max_compression_ratio` times the file are refused, see most_decompressed.
class unzipped_file {
 public:
  explicit unzipped_file(std::filesystem::path path, std::uint64_t max_compression_ratio = default_max_compression_ratio)
      : path_(std::move(path)), max_compression_ratio_(max_compression_ratio), file_(open_to_read(path_)) {
    os::file_status status;
    if (!os::get_status(file_.number(), status)) fail_on_file("read", path_, errno);
    bytes_on_disk_ = std::size_t(status.size);
    std::array<unsigned char, 2> first{};
    zipped_ = os::read_at(file_.number(), first.data(), first.size(), 0) == 2 && first[0] == 0x1f && first[1] == 0x8b;
    if (zipped_) inflater_.emplace(compression::gzip);
  }

  /// Reads n bytes, or fewer at the end of the file. Returns the number of bytes read.
  std::size_t read_some(void* to, std::size_t n) {
    const std::span<std::byte> all(static_cast<std::byte*>(to), n);
    const std::size_t done = zipped_ ? inflate(all) : io::read_some(file_, all, path_);
    offset_ += done;
    allow(offset_);
    return done;
  }
  void read(void* to, std::size_t n) {
    const std::size_t begin = offset_, got = read_some(to, n);
    if (got < n) fail(strata::detail::text_of({"the file ends, expected ", begin + n, " bytes, got ", begin + got}));
  }
  std::uint32_t read_big_endian() {
    std::array<std::uint8_t, 4> b;
    read(b.data(), b.size());
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

  [[noreturn]] void fail(const std::string& what) const { fail(offset_, what); }
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw_error({path_.string(), ": byte ", offset, zipped_ ? " of the decompressed data: " : ": ", what});
  }
  std::size_t bytes_on_disk() const { return bytes_on_disk_; }
  /// Throws strata_error if so many bytes would exceed the limit of decompressed data.
  void allow(std::uint64_t bytes) const {
    if (!zipped_ || bytes <= most_decompressed(bytes_on_disk_, max_compression_ratio_)) return;
    fail(strata::detail::text_of({"the data are more than ", max_compression_ratio_, " times as long as the file of ",
                                  bytes_on_disk_, " bytes, which max_compression_ratio forbids"}));
  }
  /// An upper bound of the bytes that follow: deflate expands a byte to at most 1032.
  std::uint64_t at_most() const {
    return zipped_ ? 1032 * std::uint64_t{bytes_on_disk_} : bytes_on_disk_ - std::min(offset_, bytes_on_disk_);
  }

 private:
  std::size_t inflate(std::span<std::byte> to) {
    const std::size_t n = to.size();
    while (!to.empty()) {
      if (compressed_.empty()) {
        block_.resize(std::size_t{1} << 17);
        compressed_ = std::span(block_).first(io::read_some(file_, block_, path_));
      }
      if (compressed_.empty()) {
        if (inflater_->within_stream()) fail(offset_ + n - to.size(), "the compressed data end too early");
        break;
      }
      if (const char* why = inflater_->inflate(compressed_, to)) fail(offset_ + n - to.size(), why);
    }
    return n - to.size();
  }

  std::filesystem::path path_;
  std::uint64_t max_compression_ratio_;
  std::size_t bytes_on_disk_ = 0, offset_ = 0;
  bool zipped_ = false;
  file_descriptor file_;
  std::optional<inflater> inflater_;
  std::vector<std::byte> block_;
  std::span<const std::byte> compressed_;  // the part of the block that has not been read
};

}  // namespace strata::io
