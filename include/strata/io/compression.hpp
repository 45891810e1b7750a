// The compression of a file.
#pragma once

namespace strata::io {

/// Of a whole file: "", "GZIP" and "ZLIB" of tf.io.TFRecordOptions.
enum class compression { none, gzip, zlib };

/// The windowBits argument of zlib: the largest window, 2^15, plus 16 for the header of gzip.
constexpr int window_bits(compression format) { return format == compression::gzip ? 15 + 16 : 15; }

}  // namespace strata::io
