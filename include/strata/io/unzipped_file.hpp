// Reads a raw or gzipped file from first to last. Needs zlib (-lz).
#pragma once
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace strata::io {

/// A file, decompressed if it is gzipped. Errors name the file and the offset in the (decompressed) data. Data that expand to
/// more than `max_compression_ratio` times the file are refused, see most_decompressed.
class unzipped_file {
 public:
  explicit unzipped_file(std::filesystem::path path, std::uint64_t max_compression_ratio = default_max_compression_ratio)
      : path_(std::move(path)), max_compression_ratio_(max_compression_ratio) {
    file_descriptor opened = open_to_read(path_);
    struct stat status{};
    if (::fstat(opened.number(), &status) != 0) fail_on_file("read", path_, errno);
    bytes_on_disk_ = std::size_t(status.st_size);
    file_.reset(gzdopen(opened.number(), "rb"));
    if (!file_) throw_exception(std::bad_alloc());
    (void)std::move(opened).release();  // zlib closes it
    gzbuffer(file_.get(), 1u << 17);
    zipped_ = gzdirect(file_.get()) == 0;
  }

  /// Reads n bytes, or fewer at the end of the file. Returns how many.
  std::size_t read_some(void* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const int got =
          gzread(file_.get(), static_cast<char*>(to) + done, static_cast<unsigned>(std::min<std::size_t>(n - done, 1u << 30)));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    offset_ += done;
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) fail("the compressed data end too early");
    if (code != Z_OK && code != Z_STREAM_END) fail(code == Z_ERRNO ? std::strerror(errno) : text);
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
  /// Throws strata::error if the data may not have so many bytes.
  void allow(std::uint64_t bytes) const {
    if (!zipped_ || bytes <= most_decompressed(bytes_on_disk_, max_compression_ratio_)) return;
    fail(strata::detail::text_of({"the data are more than ", max_compression_ratio_, " times as long as the file of ",
                                  bytes_on_disk_, " bytes, which max_compression_ratio forbids"}));
  }
  /// The most bytes that can follow: deflate makes at most 1032 of one.
  std::uint64_t at_most() const {
    return zipped_ ? 1032 * std::uint64_t{bytes_on_disk_} : bytes_on_disk_ - std::min(offset_, bytes_on_disk_);
  }

 private:
  struct close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };
  std::filesystem::path path_;
  std::uint64_t max_compression_ratio_;
  std::size_t bytes_on_disk_ = 0, offset_ = 0;
  bool zipped_ = false;
  std::unique_ptr<std::remove_pointer_t<gzFile>, close> file_;
};

}  // namespace strata::io
