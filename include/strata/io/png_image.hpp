// Images as the bytes of a PNG file, without a library: the pixels are stored, not compressed.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/error.hpp>
#include <string>
#include <string_view>

namespace strata::io {

namespace detail {

/// The CRC of PNG and zlib, which is not crc32c.
inline std::uint32_t png_checksum(std::string_view bytes) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> all{};
    for (std::uint32_t n = 0; n < all.size(); ++n) {
      all[n] = n;
      for (int bit = 0; bit < 8; ++bit) all[n] = (all[n] >> 1) ^ ((all[n] & 1u) != 0 ? 0xedb88320u : 0u);
    }
    return all;
  }();
  std::uint32_t sum = ~std::uint32_t{0};
  for (const char c : bytes) sum = table[(sum ^ static_cast<std::uint8_t>(c)) & 0xffu] ^ (sum >> 8);
  return ~sum;
}
/// The checksum at the end of data of zlib. https://www.rfc-editor.org/rfc/rfc1950
inline std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}
inline void put_big_endian(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xffu);
}
inline void put_png_chunk(std::string& to, std::string_view type, std::string_view data) {
  put_big_endian(to, static_cast<std::uint32_t>(data.size()));
  const std::size_t checked = to.size();
  to.append(type).append(data);
  put_big_endian(to, png_checksum(std::string_view(to).substr(checked)));
}

}  // namespace detail

/// pixels: (height, width, channels), with 1 (gray), 3 (RGB) or 4 (RGB and opacity) channels. Throws strata_error for any
/// other number of channels or of pixels. https://www.w3.org/TR/png-3
inline std::string png_image(std::span<const std::uint8_t> pixels, std::uint32_t height, std::uint32_t width, int channels) {
  if (channels != 1 && channels != 3 && channels != 4) throw_error({"an image has 1, 3 or 4 channels, not ", channels});
  const std::size_t row = std::size_t{width} * static_cast<std::size_t>(channels);
  if (height == 0 || width == 0 || pixels.size() != height * row)
    throw_error({"an image of ", height, " x ", width, " x ", channels, " does not have ", pixels.size(), " values"});

  std::string rows;  // each begins with its filter: none
  rows.reserve(height * (row + 1));
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';
    for (const std::uint8_t value : pixels.subspan(y * row, row)) rows += static_cast<char>(value);
  }
  std::string data = "\x78\x01";  // zlib, with blocks of stored bytes
  constexpr std::size_t most = 65535;
  for (std::size_t at = 0; at < rows.size(); at += most) {
    const std::size_t size = std::min(most, rows.size() - at);
    data += static_cast<char>(at + size == rows.size());
    for (const std::size_t number : {size, ~size})
      data.append({static_cast<char>(number & 0xff), static_cast<char>(number >> 8 & 0xff)});
    data.append(rows, at, size);
  }
  detail::put_big_endian(data, detail::adler32(rows));

  std::string header;
  detail::put_big_endian(header, width);
  detail::put_big_endian(header, height);
  constexpr char bits = 8, gray = 0, color = 2, with_opacity = 6;
  header.append({bits, channels == 1 ? gray : channels == 3 ? color : with_opacity, 0, 0, 0});
  std::string file = "\x89PNG\r\n\x1a\n";
  detail::put_png_chunk(file, "IHDR", header);
  detail::put_png_chunk(file, "IDAT", data);
  detail::put_png_chunk(file, "IEND", {});
  return file;
}

}  // namespace strata::io
