// PNG and JPEG files for tests, written by the libraries.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <jpeglib.h>
#include <png.h>

namespace strata::test {

using bytes = std::vector<std::uint8_t>;

/// A folder of its own, deleted at the end.
struct image_folder {
  std::filesystem::path path;

  image_folder() {
    static int number = 0;
    path =
        std::filesystem::temp_directory_path() / ("strata-images-" + std::to_string(getpid()) + "-" + std::to_string(++number));
    std::filesystem::create_directories(path);
  }
  ~image_folder() { std::filesystem::remove_all(path); }

  std::filesystem::path put(const std::string& name, const bytes& content) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return path / name;
  }
};

struct png_options {
  int bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette = {};
  bytes palette_opacity = {};
  png_color_16* transparent = nullptr;
};

/// A PNG file. `rows`: the bytes of all rows, packed as in PNG.
inline bytes png_file(int width, int height, int type, const bytes& rows, const png_options& options = {}) {
  bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep from, std::size_t n) {
        auto& to = *static_cast<bytes*>(png_get_io_ptr(p));
        to.insert(to.end(), from, from + n);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), options.bits, type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) png_set_PLTE(png, info, options.palette.data(), static_cast<int>(options.palette.size()));
  if (!options.palette_opacity.empty())
    png_set_tRNS(png, info, options.palette_opacity.data(), static_cast<int>(options.palette_opacity.size()), nullptr);
  if (options.transparent) png_set_tRNS(png, info, nullptr, 0, options.transparent);
  const std::size_t stride = rows.size() / static_cast<std::size_t>(height);
  std::vector<png_bytep> each;
  for (int y = 0; y < height; ++y) each.push_back(const_cast<png_bytep>(rows.data()) + static_cast<std::size_t>(y) * stride);
  png_set_rows(png, info, each.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

struct jpeg_options {
  int quality = 90;
  bool progressive = false;
  bool adobe = true;
};

inline bytes jpeg_file(int width, int height, J_COLOR_SPACE colours, const bytes& pixels, const jpeg_options& options = {}) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width), info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = colours == JCS_GRAYSCALE ? 1 : colours == JCS_RGB ? 3 : 4;
  info.in_color_space = colours;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  if (!options.adobe) info.write_Adobe_marker = FALSE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) +
                   std::size_t{info.next_scanline} * info.image_width * static_cast<std::size_t>(info.input_components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const bytes file(memory, memory + size);
  std::free(memory);
  return file;
}

/// Pixels that resemble a picture: smooth, with a little noise.
inline bytes picture(int width, int height, int channels, unsigned seed = 1) {
  bytes values;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        seed = seed * 1664525u + 1013904223u;
        values.push_back(static_cast<std::uint8_t>((x * (5 + c) + y * (9 - 2 * c)) % 240 + static_cast<int>(seed >> 29)));
      }
  return values;
}

}  // namespace strata::test
