// Writes TFRecord files. Needs zlib (-lz).
#pragma once
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <strata/base/error.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/compression.hpp>
#include <strata/io/crc32c.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::data {

using io::compression;

struct tf_record_writer_options {
  data::compression compression = data::compression::none;
  int compression_level = -1;  // 0 ... 9; -1: zlib's choice
};

namespace detail {
/// Compresses blocks with zlib into a file.
class deflater {
  struct end {
    void operator()(z_stream* stream) const {
      deflateEnd(stream);
      delete stream;
    }
  };
  std::unique_ptr<z_stream, end> stream_{new z_stream{}};  // zlib keeps its address
  std::vector<std::byte> block_ = std::vector<std::byte>(1 << 16);

 public:
  explicit deflater(const tf_record_writer_options& options) {
    constexpr int memory_level = 8;  // zlib's default
    const int code = deflateInit2(stream_.get(), options.compression_level, Z_DEFLATED, io::window_bits(options.compression),
                                  memory_level, Z_DEFAULT_STRATEGY);
    if (code == Z_STREAM_ERROR)
      throw_error("tf_record_writer: compression_level is " + std::to_string(options.compression_level) +
                  ", it must be 0 ... 9, or -1");
    if (code != Z_OK) throw_exception(std::bad_alloc());
  }
  /// `last`: these are the last bytes.
  void write(std::span<const std::byte> bytes, bool last, io::atomic_file& to) {
    do {
      const std::span<const std::byte> some = bytes.first(std::min<std::size_t>(bytes.size(), 1u << 30));
      bytes = bytes.subspan(some.size());
      stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(some.data()));  // zlib does not write there
      stream_->avail_in = uInt(some.size());
      do {
        stream_->next_out = reinterpret_cast<Bytef*>(block_.data());
        stream_->avail_out = uInt(block_.size());
        deflate(stream_.get(), last && bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        to.write(std::span<const std::byte>(block_).first(block_.size() - stream_->avail_out));
      } while (stream_->avail_out == 0);
    } while (!bytes.empty());
  }
};
}  // namespace detail

/// A new TFRecord file:
///
///     data::tf_record_writer writer("train.tfrecord");
///     for (...) writer.write(bytes);
///     writer.close();
///
/// close() moves the complete file to its place. Without close(), or if anything fails, an older file is unchanged. Throws
/// strata_error, with the path and the message of the system, if it cannot be written.
/// https://www.tensorflow.org/api_docs/python/tf/io/TFRecordWriter
class tf_record_writer {
 public:
  explicit tf_record_writer(const std::filesystem::path& path, tf_record_writer_options options = {}) : file_(path) {
    if (options.compression != compression::none) deflater_ = std::make_unique<detail::deflater>(options);
    buffer_.reserve(block);
  }

  void write(std::span<const std::byte> record) {
    if (closed_) throw_error("cannot write " + file_.path().string() + ": it is closed");
    std::array<std::byte, 8> length;
    put(length, record.size());
    std::array<std::byte, 4> checksum_of_length, checksum;
    put(checksum_of_length, io::masked_crc32c(length));
    put(checksum, io::masked_crc32c(record));
    append(length);
    append(checksum_of_length);
    append(record);
    append(checksum);
  }
  void write(std::string_view record) { write(std::as_bytes(std::span(record))); }

  void close() {
    if (closed_) return;
    closed_ = true;
    flush(true);
    file_.commit();
  }

 private:
  static constexpr std::size_t block = std::size_t{1} << 18;

  io::atomic_file file_;
  std::unique_ptr<detail::deflater> deflater_;
  std::vector<std::byte> buffer_;
  bool closed_ = false;

  static void put(std::span<std::byte> little_endian, std::uint64_t value) {
    for (std::size_t i = 0; i < little_endian.size(); ++i) little_endian[i] = std::byte(value >> 8 * i);
  }
  void append(std::span<const std::byte> bytes) {
    if (bytes.size() > block - buffer_.size()) flush(false);
    if (bytes.size() >= block)
      pass_on(bytes, false);
    else
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void flush(bool last) {
    pass_on(buffer_, last);
    buffer_.clear();
  }
  void pass_on(std::span<const std::byte> bytes, bool last) {
    if (deflater_)
      deflater_->write(bytes, last, file_);
    else
      file_.write(bytes);
  }
};

}  // namespace strata::data
