// Reads PNG and JPEG files, writes PNG files. Needs libpng (-lpng) and libjpeg-turbo (-ljpeg).
// needs: libpng libjpeg
#pragma once
#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/tensor.hpp>
#include <strata/data/image/affine_transform.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/io/open_file.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <jpeglib.h>  // uses FILE without including <cstdio>

#include <jerror.h>
#include <png.h>

namespace strata::data {

/// Pixels row by row, of `channels` bytes each: 1 is grey, 3 are red, green and blue, 4 the same and opacity.
struct image {
  int height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> values;
};

/// The default limit for the pixels of an image: a file of a few bytes can claim any size, and compress it well.
inline constexpr std::uint64_t default_max_pixels = std::uint64_t{1} << 27;

namespace detail {

using byte_span = std::span<const std::uint8_t>;

/// The jump target of libpng and libjpeg when they fail, and the reason.
struct decoder_failure {
  std::jmp_buf back;
  std::array<char, 256> reason;
  static_assert(JMSG_LENGTH_MAX <= 256);

  [[noreturn]] void leave(const char* why) {
    reason[std::string_view(why).copy(reason.data(), reason.size() - 1)] = '\0';
    std::longjmp(back, 1);
  }
};

/// Calls f. Returns false if a library fails: it jumps out of f, over its own frames, so no object in f may have a destructor.
template <class F>
[[gnu::noinline]] bool completes(std::jmp_buf& back, const F& f) {
  if (setjmp(back) != 0) return false;
  f();
  return true;
}

/// Throws strata_error for impossible extents. `most` is the number of pixels in a file of this size under the best
/// compression that its format allows.
inline void check_extents(const std::string& name, std::uint64_t height, std::uint64_t width, std::size_t bytes,
                          std::uint64_t most, std::uint64_t max_pixels) {
  const std::uint64_t pixels = height * width;
  const auto refuse = [&](const std::string& why) {
    throw_error(name + ": an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels: " + why);
  };
  if (pixels > max_pixels) refuse("more than " + std::to_string(max_pixels) + " pixels, which max_pixels forbids");
  if (pixels > most) refuse("the file, " + std::to_string(bytes) + " bytes, is too short for that many");
}

inline void set_extents(image& out, std::uint64_t height, std::uint64_t width, int channels) {
  out.height = static_cast<int>(height), out.width = static_cast<int>(width), out.channels = channels;
  out.values.resize(static_cast<std::size_t>(height * width) * static_cast<std::size_t>(channels));
}

/// Luma of ITU-R BT.601 as Pillow rounds it, in place.
inline void rgb_to_grey(image& rgb) {
  const std::uint8_t* from = rgb.values.data();
  for (std::size_t i = 0, n = rgb.values.size() / 3; i < n; ++i, from += 3)
    rgb.values[i] = static_cast<std::uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
  set_extents(rgb, static_cast<std::uint64_t>(rgb.height), static_cast<std::uint64_t>(rgb.width), 1);
}

/// CMYK to RGB as in Pillow: red = (255 - cyan) (255 - black) / 255, rounded. In place. Adobe stores 255 - ink.
inline void cmyk_to_rgb(image& cmyk, bool adobe, int channels) {
  const std::uint8_t* from = cmyk.values.data();
  std::uint8_t* to = cmyk.values.data();
  const unsigned inverted = adobe ? 0 : 255;
  for (std::size_t i = 0, n = cmyk.values.size() / 4; i < n; ++i, from += 4, to += channels) {
    const unsigned white = from[3] ^ inverted;
    for (int c = 0; c < 3; ++c) {
      const unsigned product = (255 - (from[c] ^ inverted)) * white + 128;
      to[c] = static_cast<std::uint8_t>(white - (((product >> 8) + product) >> 8));
    }
    if (channels == 4) to[3] = 255;
  }
  set_extents(cmyk, static_cast<std::uint64_t>(cmyk.height), static_cast<std::uint64_t>(cmyk.width), channels);
}

/// Decodes images one after the other, and reuses its tables. One per thread.
class jpeg_decoder {
  /// The target of jpeg_decompress_struct::err.
  struct error_manager {
    jpeg_error_mgr base;
    decoder_failure failure;
  };
  static decoder_failure& failure_of(j_common_ptr info) { return reinterpret_cast<error_manager*>(info->err)->failure; }
  [[noreturn]] static void give_up(j_common_ptr info) {
    std::array<char, JMSG_LENGTH_MAX> text;
    info->err->format_message(info, text.data());
    failure_of(info).leave(text.data());
  }
  /// Treats warnings as errors if libjpeg would continue with made-up pixels, and ignores them if it only skips bytes.
  static void hear_warning(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
      case JWRN_ARITH_BAD_CODE:
      case JWRN_BOGUS_PROGRESSION:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_JPEG_EOF:
      case JWRN_MUST_RESYNC:
      case JWRN_NOT_SEQUENTIAL:
        give_up(info);
      default:
        break;
    }
  }
  /// Limits the scans of a progressive file: each takes only a few bytes, but decodes the whole image.
  static void watch_scans(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > 500) failure_of(info).leave("more than 500 scans");
  }

 public:
  jpeg_decoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = give_up;
    errors_.base.emit_message = hear_warning;
    errors_.base.output_message = [](j_common_ptr) {};
    if (!completes(errors_.failure.back, [&] { jpeg_create_decompress(&info_); }))
      throw_error(std::string("libjpeg: ") + errors_.failure.reason.data());
    scans_.progress_monitor = watch_scans;
    info_.progress = &scans_;
  }
  jpeg_decoder(const jpeg_decoder&) = delete;
  jpeg_decoder& operator=(const jpeg_decoder&) = delete;
  ~jpeg_decoder() { jpeg_destroy_decompress(&info_); }

  void decode(byte_span file, int channels, image& out, const std::string& name, std::uint64_t max_pixels) {
    const auto guard = [&](const auto& f) {
      if (completes(errors_.failure.back, f)) return;
      jpeg_abort_decompress(&info_);
      throw_error(name + ": " + errors_.failure.reason.data());
    };
    guard([&] {
      jpeg_mem_src(&info_, file.data(), static_cast<unsigned long>(file.size()));
      jpeg_read_header(&info_, TRUE);
    });
    // A block of 64 pixels takes at least one bit, its mean.
    check_extents(name, info_.image_height, info_.image_width, file.size(), 512 * std::uint64_t{file.size()}, max_pixels);
    const bool ink = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = ink ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
    set_extents(out, info_.image_height, info_.image_width, ink ? 4 : channels);
    guard([&] {
      jpeg_start_decompress(&info_);
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row =
            out.values.data() + std::size_t{info_.output_scanline} * info_.output_width * static_cast<std::size_t>(out.channels);
        jpeg_read_scanlines(&info_, &row, 1);
      }
      jpeg_finish_decompress(&info_);
    });
    if (ink) cmyk_to_rgb(out, info_.saw_Adobe_marker != 0, std::max(channels, 3));
    if (ink && channels == 1) rgb_to_grey(out);
  }

 private:
  error_manager errors_;
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr scans_{};
};

/// Reads one image.
class png_decoder {
  static void fail(png_structp png, png_const_charp why) { static_cast<decoder_failure*>(png_get_error_ptr(png))->leave(why); }
  static void read(png_structp png, png_bytep to, std::size_t n) {
    auto& left = *static_cast<byte_span*>(png_get_io_ptr(png));
    if (n > left.size()) png_error(png, "the file ends too early");
    std::memcpy(to, left.data(), n);
    left = left.subspan(n);
  }

 public:
  png_decoder() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, fail, [](png_structp, png_const_charp) {});
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw_error("libpng: cannot start");
    }
  }
  png_decoder(const png_decoder&) = delete;
  png_decoder& operator=(const png_decoder&) = delete;
  ~png_decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  void decode(byte_span file, int channels, image& out, const std::string& name, std::uint64_t max_pixels) {
    const auto guard = [&](const auto& f) {
      if (!completes(failure_.back, f)) throw_error(name + ": " + failure_.reason.data());
    };
    byte_span left = file;
    png_uint_32 height = 0, width = 0;
    int bits = 0, type = 0;
    guard([&] {
      png_set_read_fn(png_, &left, read);
      // Reads only pixels and transparency: comments and colour profiles, which may unpack to gigabytes, are skipped.
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_read_info(png_, info_);
      png_get_IHDR(png_, info_, &width, &height, &bits, &type, nullptr, nullptr, nullptr);
    });
    // Deflate expands a byte to at most 1032.
    const auto bits_of_a_pixel = static_cast<std::uint64_t>(bits * png_get_channels(png_, info_));
    check_extents(name, height, width, file.size(), 8 * 1032 * std::uint64_t{file.size()} / bits_of_a_pixel, max_pixels);

    const bool colour = (type & PNG_COLOR_MASK_COLOR) != 0;
    const int decoded = channels == 1 && colour ? 3 : channels;
    set_extents(out, height, width, decoded);
    guard([&] {
      png_set_expand(png_);
      png_set_strip_16(png_);
      if (decoded >= 3) png_set_gray_to_rgb(png_);
      if (decoded == 4)
        png_set_add_alpha(png_, 255, PNG_FILLER_AFTER);  // adds an opaque channel if there is none
      else
        png_set_strip_alpha(png_);
      const int passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      const std::size_t row = std::size_t{width} * static_cast<std::size_t>(decoded);
      if (png_get_rowbytes(png_, info_) != row) png_error(png_, "an unknown kind of pixels");
      for (int pass = 0; pass < passes; ++pass)
        for (png_uint_32 y = 0; y < height; ++y) png_read_row(png_, out.values.data() + y * row, nullptr);
      png_read_end(png_, nullptr);
    });
    if (decoded != channels) rgb_to_grey(out);
  }

 private:
  decoder_failure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace detail

/// Decodes a PNG or JPEG file that lies in memory into `out`, whose memory is reused. `name` is for errors.
///
/// channels: 1 grey, 3 red, green and blue, 4 the same and opacity, as in tf.io.decode_image. Colours are converted to grey by
/// their luma, missing opacity is 255, of 16 bits the upper 8 are taken, and CMYK is converted to RGB. Colour profiles and
/// orientation tags are ignored.
///
/// Throws strata_error, with the name and the reason, if the file is neither a PNG nor a JPEG file, is damaged or
/// truncated, claims more than `max_pixels` or more than a file of its size can hold; and if channels is not 1, 3 or 4.
inline void decode_image(std::span<const std::uint8_t> file, int channels, image& out, const std::string& name = "image",
                         std::uint64_t max_pixels = default_max_pixels) {
  if (channels != 1 && channels != 3 && channels != 4)
    throw_error(name + ": an image is read with 1, 3 or 4 channels, not with " + std::to_string(channels));
  static constexpr std::uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[] = {0xff, 0xd8, 0xff};
  const auto starts_with = [&](detail::byte_span signature) {
    return file.size() >= signature.size() && std::equal(signature.begin(), signature.end(), file.begin());
  };
  if (starts_with(png)) {
    detail::png_decoder().decode(file, channels, out, name, max_pixels);
  } else if (starts_with(jpeg)) {
    static thread_local detail::jpeg_decoder decoder;
    decoder.decode(file, channels, out, name, max_pixels);
  } else {
    throw_error(name + (file.empty() ? ": the file is empty" : ": neither a PNG nor a JPEG file"));
  }
}

/// Reads a PNG or JPEG file into `out`, whose memory is reused, as decode_image does. Throws also if the file cannot be read.
inline void read_image(const std::string& path, int channels, image& out, std::uint64_t max_pixels = default_max_pixels) {
  static thread_local std::vector<std::uint8_t> bytes;
  io::read_content(path, bytes);
  decode_image(bytes, channels, out, path, max_pixels);
}

/// Reads a PNG or JPEG file; as above.
inline image read_image(const std::string& path, int channels = 3, std::uint64_t max_pixels = default_max_pixels) {
  image out;
  read_image(path, channels, out, max_pixels);
  return out;
}

/// Writes an image of shape (height, width, channels) with values 0 to 255, which are rounded; channels: 1, 3 or 4 as above.
/// The file appears complete or not at all. Throws strata_error if it cannot be written.
template <class T, shape S>
void write_png(const std::string& path, tensor<T, S> pixels) {
  static_assert(S.rank() == 3 && (S[2] == 1 || S[2] == 3 || S[2] == 4), "write_png takes (height, width, 1, 3 or 4 channels)");
  std::vector<std::uint8_t> bytes(std::size_t{S.size()});
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = detail::number_of<std::uint8_t>(static_cast<double>(pixels.data[i]));
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = S[0], png.width = S[1];
  png.format = S[2] == 1 ? PNG_FORMAT_GRAY : S[2] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t size = file.size();
  if (!png_image_write_to_memory(&png, file.data(), &size, 0, bytes.data(), 0, nullptr)) throw_error(path + ": " + png.message);
  file.resize(size);
  io::write_file_atomically(path, file);
}

}  // namespace strata::data
