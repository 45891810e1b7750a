// needs: libpng libjpeg
// PNG and JPEG files, with 1, 3 and 4 channels. The checksums of a PNG file are corrected, so that inputs get past them.
#include <strata/data/image/image_file.hpp>
#include <zlib.h>

#include "fuzz.hpp"
#include "unit/data_image_encode.hpp"
using namespace strata;

namespace {
constexpr int channels[] = {1, 3, 4};

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const auto add = [&](const test::bytes& file) {
    for (unsigned c : {0u, 1u, 2u}) all.push_back(fuzz::with_choice(c, fuzz::bytes_of(file)));
  };
  const auto add_png = [&]<shape S>() {
    const std::array<float, S.size()> pixels{9};
    all.push_back(fuzz::with_choice(
        1, fuzz::written([&](const auto& path) { data::write_png(path, tensor<const float, S>{pixels.data()}); })));
  };
  add_png.operator()<shape{2, 3, 1}>();
  add_png.operator()<shape{2, 3, 3}>();
  add_png.operator()<shape{2, 3, 4}>();
  add(test::png_file(9, 9, PNG_COLOR_TYPE_RGB, test::picture(9, 9, 3), {.interlaced = true}));
  add(test::png_file(4, 2, PNG_COLOR_TYPE_GRAY, test::picture(4, 2, 2), {.bits = 16}));
  add(test::png_file(8, 2, PNG_COLOR_TYPE_PALETTE, {0x1b, 0xe4},
                     {.bits = 1, .palette = {{1, 2, 3}, {4, 5, 6}}, .palette_opacity = {7}}));
  add(test::jpeg_file(9, 5, JCS_RGB, test::picture(9, 5, 3)));
  add(test::jpeg_file(5, 9, JCS_GRAYSCALE, test::picture(5, 9, 1), {.progressive = true}));
  add(test::jpeg_file(3, 3, JCS_CMYK, test::picture(3, 3, 4)));
  return all;
}

/// Corrects the checksum of each chunk, which consists of length, type, data and the checksum of the latter two.
std::string with_checksums(std::string png) {
  const auto number = [&](std::size_t at) {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i) n = n << 8 | std::uint8_t(png[at + i]);
    return n;
  };
  for (std::size_t at = 8; at + 12 <= png.size();) {
    const std::size_t length = number(at);
    if (length > png.size() - at - 12) break;
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4, uInt(length + 4));
    for (std::size_t i = 0; i < 4; ++i) png[at + 8 + length + i] = char(sum >> (24 - 8 * i));
    at += 12 + length;
  }
  return png;
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  const int wanted = channels[chosen.number % 3];
  std::string bytes(chosen.rest);
  if (bytes.starts_with('\x89')) bytes = with_checksums(std::move(bytes));
  data::image image;
  constexpr std::uint64_t max_pixels = 1 << 20;
  data::decode_image({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, wanted, image, "image", max_pixels);
  fuzz::check(image.channels == wanted && std::uint64_t(image.height) * std::uint64_t(image.width) <= max_pixels);
  fuzz::check(image.values.size() == std::size_t(image.height) * std::size_t(image.width) * std::size_t(wanted));
  fuzz::look_at(image.values);
}

const fuzz::target image{"image", seeds, read};
}  // namespace
