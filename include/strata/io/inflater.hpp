// Decompresses a file. Needs zlib (-lz).
#pragma once
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <strata/base/error.hpp>
#include <strata/io/compression.hpp>

namespace strata::io {

/// Decompresses a file with zlib.
class inflater {
  struct end {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };
  std::unique_ptr<z_stream, end> stream_;  // zlib keeps its address
  compression format_;
  bool within_stream_ = true, padded_ = false;

 public:
  explicit inflater(compression format) : stream_(new z_stream{}), format_(format) {
    if (inflateInit2(stream_.get(), window_bits(format)) != Z_OK) core::throw_exception(std::bad_alloc());
  }

  /// Decompresses from `in` to `out` until one of them is empty; both become shorter. Returns a description of damaged data, or
  /// nullptr.
  const char* inflate(std::span<const std::byte>& in, std::span<std::byte>& out) {
    while (!in.empty() && !out.empty()) {
      if (!within_stream_) {
        const bool is_zero = in.front() == std::byte{};
        if (format_ != compression::gzip || (padded_ && !is_zero)) return "bytes follow the end of the compressed data";
        if (is_zero) {  // gzip allows zeros at the end, to fill a block
          padded_ = true;
          in = in.subspan(1);
          continue;
        }
        inflateReset(stream_.get());  // gzip files may be concatenated: cat a.gz b.gz
        within_stream_ = true;
      }
      constexpr std::size_t most = std::numeric_limits<uInt>::max();
      stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // zlib does not write there
      stream_->avail_in = uInt(std::min(in.size(), most));
      stream_->next_out = reinterpret_cast<Bytef*>(out.data());
      stream_->avail_out = uInt(std::min(out.size(), most));
      const int code = ::inflate(stream_.get(), Z_NO_FLUSH);
      in = in.subspan(std::size_t(reinterpret_cast<const std::byte*>(stream_->next_in) - in.data()));
      out = out.subspan(std::size_t(reinterpret_cast<std::byte*>(stream_->next_out) - out.data()));
      if (code == Z_MEM_ERROR) core::throw_exception(std::bad_alloc());
      if (code != Z_OK && code != Z_STREAM_END) return stream_->msg ? stream_->msg : "the compressed data need a dictionary";
      if (code == Z_STREAM_END) within_stream_ = false;
    }
    return nullptr;
  }
  /// Whether the compressed data are incomplete.
  bool within_stream() const { return within_stream_; }
};

}  // namespace strata::io
