// Reads a file from first to last, and decompresses it if it is compressed. Needs zlib (-lz).
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <strata/base/text.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/io/file_error.hpp>
#include <strata/io/file_kind.hpp>
#include <strata/io/inflater.hpp>
#include <strata/io/os.hpp>
#include <string>
#include <utility>

namespace strata::io {

/// Uninitialised memory that keeps its first bytes when it grows.
class growing_buffer {
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;

 public:
  std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  void grow(std::size_t size, std::size_t kept) {
    std::unique_ptr<std::byte[]> larger(new std::byte[size]);
    if (kept > 0) std::memcpy(larger.get(), memory_.get(), kept);
    memory_ = std::move(larger);
    size_ = size;
  }
};

/// A window over the bytes of a file that moves towards its end. One object reads many files, one after the other, and keeps its
/// memory. The memory grows with the bytes that are read, never with a length that a file claims.
/// Reads blocks instead of mapping the file: a file that becomes shorter or a failing disk is then an error instead of a signal,
/// and pipes and compressed files are read in the same way. 9 GB/s of checked records are more than later stages can use.
class file_window {
 public:
  /// Compressed data that expand beyond `max_compression_ratio` times the file count as damaged, see most_decompressed.
  void open(const std::filesystem::path& path, compression format,
            std::uint64_t max_compression_ratio = default_max_compression_ratio) {
    path_ = path;
    max_compression_ratio_ = max_compression_ratio;
    file_ = file_descriptor(os::open(path_, os::to_read));
    if (!file_) fail_on_file("read", path_, errno);
    os::file_status status;
    if (!os::get_status(file_.number(), status)) fail_on_file("read", path_, errno);
    if (status.type == os::file_type::folder) fail_on_file("read", path_, EISDIR);
    refuse_lfs_pointer(path_, file_);
    os::expect_all_in_order(file_.number());
    inflater_.reset();
    if (format != compression::none) inflater_ = std::make_unique<inflater>(format);
    to_inflate_ = {};
    begin_ = end_ = 0;
    offset_ = 0;
    const bool is_regular = status.type == os::file_type::regular;
    bytes_on_disk_ = is_regular ? status.size : 0;
    bytes_read_ = 0;
    size_ = is_regular && !inflater_ ? status.size : std::numeric_limits<std::uint64_t>::max();
    at_end_ = false;
    damage_.clear();
  }
  bool is_open() const { return bool(file_); }
  void close() {
    file_ = {};
    inflater_.reset();
  }

  /// The next n bytes, or fewer at the end of the file. Valid until the next call. Throws strata_error if reading fails.
  std::span<const std::byte> peek(std::size_t n) {
    while (end_ - begin_ < n && !at_end_) fill();
    return {buffer_.data() + begin_, std::min(n, end_ - begin_)};
  }
  /// Moves the window past n bytes that peek has returned.
  void skip(std::size_t n) {
    begin_ += n;
    offset_ += n;
  }
  /// The offset of the next byte in the (decompressed) file.
  std::uint64_t offset() const { return offset_; }
  /// An upper bound of the bytes that follow.
  std::uint64_t at_most() const { return std::max<std::uint64_t>(size_ - std::min(offset_, size_), end_ - begin_); }
  /// Describes damage of the compressed data; "" if there is none.
  const std::string& damage() const { return damage_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr std::size_t block = std::size_t{1} << 18;

  std::filesystem::path path_;
  file_descriptor file_;
  std::unique_ptr<inflater> inflater_;
  growing_buffer buffer_, compressed_;
  std::span<const std::byte> to_inflate_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0, size_ = 0;
  std::uint64_t max_compression_ratio_ = default_max_compression_ratio, bytes_on_disk_ = 0,
                bytes_read_ = 0;  // bytes read from the compressed file
  bool at_end_ = false;
  std::string damage_;

  /// Reads more bytes after those in the buffer.
  void fill() {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    // At most twice what has been read, so that a false length cannot ask for terabytes.
    if (end_ == buffer_.size()) buffer_.grow(std::max(block, 2 * buffer_.size()), end_);
    const std::span<std::byte> room(buffer_.data() + end_, buffer_.size() - end_);
    end_ += inflater_ ? inflate(room) : read(room);
  }

  /// Returns 0 at the end of the file.
  std::size_t read(std::span<std::byte> to) {
    const std::ptrdiff_t n = os::read(file_.number(), to.data(), to.size());
    if (n < 0) fail_on_file("read", path_, errno);
    if (n == 0) at_end_ = true;
    bytes_read_ += std::uint64_t(n);
    return std::size_t(n);
  }

  std::size_t inflate(std::span<std::byte> to) {
    const std::size_t before = to.size();
    if (to_inflate_.empty()) {
      if (compressed_.size() == 0) compressed_.grow(block, 0);
      to_inflate_ = {compressed_.data(), read({compressed_.data(), compressed_.size()})};
    }
    if (at_end_) {
      if (inflater_->within_stream()) damage_ = "the compressed data end too early";
    } else if (const char* why = inflater_->inflate(to_inflate_, to)) {
      damage_ = why;
      at_end_ = true;
    }
    const std::size_t made = before - to.size();
    if (offset_ + (end_ - begin_) + made > most_decompressed(std::max(bytes_on_disk_, bytes_read_), max_compression_ratio_)) {
      damage_ = strata::detail::text_of(
          {"the data are more than ", max_compression_ratio_, " times as long as the file, which max_compression_ratio forbids"});
      at_end_ = true;
    }
    return made;
  }
};

}  // namespace strata::io
