// The compression of a file, and how far its data may expand.
#pragma once
#include <algorithm>
#include <cstdint>

namespace strata::io {

/// The compression of a whole file: "", "GZIP" and "ZLIB" of tf.io.TFRecordOptions.
enum class compression { none, gzip, zlib };

/// The windowBits argument of zlib: the largest window, 2^15, plus 16 for the header of gzip.
constexpr int window_bits(compression format) { return format == compression::gzip ? 15 + 16 : 15; }

/// The default limit for the size of decompressed data as a multiple of the size of the file. Deflate reaches 1032, with one byte
/// that is repeated; tables of numbers reach about 10.
inline constexpr std::uint64_t default_max_compression_ratio = 200;

/// Limits beyond which a compressed file is refused.
struct decompression_limits {
  std::uint64_t max_compression_ratio = default_max_compression_ratio;  // bytes of data for each byte of the file
};

/// The most bytes to which a file may expand. 16 MiB are always allowed: short files of equal samples are no attack.
constexpr std::uint64_t most_decompressed(std::uint64_t bytes_on_disk, std::uint64_t max_compression_ratio) {
  constexpr std::uint64_t always = std::uint64_t{16} << 20, largest = ~std::uint64_t{0};
  return std::max(always, max_compression_ratio != 0 && bytes_on_disk > largest / max_compression_ratio
                              ? largest
                              : bytes_on_disk * max_compression_ratio);
}

}  // namespace strata::io
