// needs: libpng libjpeg
#include <doctest/doctest.h>
#include <fcntl.h>
#include <zlib.h>

#include <strata/data/image/image_file.hpp>
#include <thread>

#include "data_image_encode.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::test;

namespace {

bytes decoded(const bytes& file, int channels, int width, int height) {
  data::image image;
  data::decode_image(file, channels, image);
  REQUIRE(image.width == width);
  REQUIRE(image.height == height);
  REQUIRE(image.channels == channels);
  REQUIRE(image.values.size() == static_cast<std::size_t>(width * height * channels));
  return image.values;
}

std::uint8_t luma(int r, int g, int b) { return static_cast<std::uint8_t>((r * 19595 + g * 38470 + b * 7471 + 32768) / 65536); }

/// Checks the file when read with 1, 3 and 4 channels. `pixels`: red, green, blue and opacity.
void check_png(const bytes& file, int width, int height, const std::vector<std::array<int, 4>>& pixels) {
  bytes grey, rgb, rgba;
  for (const auto& [r, g, b, a] : pixels) {
    grey.push_back(r == g && g == b ? static_cast<std::uint8_t>(r) : luma(r, g, b));
    for (const int v : {r, g, b}) rgb.push_back(static_cast<std::uint8_t>(v)), rgba.push_back(static_cast<std::uint8_t>(v));
    rgba.push_back(static_cast<std::uint8_t>(a));
  }
  CHECK(decoded(file, 1, width, height) == grey);
  CHECK(decoded(file, 3, width, height) == rgb);
  CHECK(decoded(file, 4, width, height) == rgba);
}

double worst(const bytes& a, const bytes& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(int(a[i]) - int(b[i])));
  return most;
}

constexpr int width = 13, height = 9,
              n = width * height;  // no multiple of 8: rows of bits end within a byte, interlacing is uneven

}  // namespace

TEST_CASE("PNG files of all kinds, exactly") {
  for (const bool interlaced : {false, true}) {
    CAPTURE(interlaced);
    for (const int bits : {1, 2, 4, 8, 16}) {
      CAPTURE(bits);
      const int stride = (width * bits + 7) / 8, levels = (1 << std::min(bits, 8)) - 1;
      bytes rows = picture(stride, height, 1);
      std::vector<std::array<int, 4>> grey, coloured;
      std::vector<png_color> palette;
      for (int i = 0; i <= levels; ++i) palette.push_back({png_byte(255 - i), png_byte(i * 37 % 256), png_byte(i * 101 % 256)});
      const bytes opacity{0, 77};  // of the first two colours; the others are opaque
      png_color_16 key{};
      const auto value = [&](int x, int y) {
        const auto at = static_cast<std::size_t>(y * stride + x * bits / 8);
        return bits == 16 ? int(rows[at]) : rows[at] >> (8 - bits - x * bits % 8) & levels;
      };
      key.gray = static_cast<png_uint_16>(value(3, 4));
      if (bits == 16) key.gray = static_cast<png_uint_16>(key.gray << 8 | rows[std::size_t(4 * stride + 7)]);
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const int v = value(x, y), g = v * 255 / levels;
          grey.push_back({g, g, g, 255});
          if (bits <= 8) {
            const png_color& p = palette[std::size_t(v)];
            coloured.push_back({p.red, p.green, p.blue, v < 2 ? opacity[std::size_t(v)] : 255});
          }
        }
      check_png(png_file(width, height, PNG_COLOR_TYPE_GRAY, rows, {.bits = bits, .interlaced = interlaced}), width, height,
                grey);
      auto see_through = grey;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const bool same_rest = bits < 16 || rows[std::size_t(y * stride + 2 * x + 1)] == (key.gray & 255);
          const int whole = bits < 16 ? key.gray : key.gray >> 8;
          if (value(x, y) == whole && same_rest) see_through[std::size_t(y * width + x)][3] = 0;
        }
      check_png(png_file(width, height, PNG_COLOR_TYPE_GRAY, rows, {.bits = bits, .interlaced = interlaced, .transparent = &key}),
                width, height, see_through);
      if (bits <= 8)
        check_png(png_file(width, height, PNG_COLOR_TYPE_PALETTE, rows,
                           {.bits = bits, .interlaced = interlaced, .palette = palette, .palette_opacity = opacity}),
                  width, height, coloured);
    }
    for (const int bits : {8, 16})
      for (const int channels : {2, 3, 4}) {
        CAPTURE(bits);
        CAPTURE(channels);
        const int size = bits / 8;
        const bytes rows = picture(width, height, channels * size);
        const auto upper = [&](int i, int c) { return int(rows[std::size_t((i * channels + c) * size)]); };
        std::vector<std::array<int, 4>> pixels;
        for (int i = 0; i < n; ++i)
          pixels.push_back(channels == 2 ? std::array{upper(i, 0), upper(i, 0), upper(i, 0), upper(i, 1)}
                                         : std::array{upper(i, 0), upper(i, 1), upper(i, 2), channels == 4 ? upper(i, 3) : 255});
        const int type = channels == 2   ? PNG_COLOR_TYPE_GRAY_ALPHA
                         : channels == 3 ? PNG_COLOR_TYPE_RGB
                                         : PNG_COLOR_TYPE_RGB_ALPHA;
        check_png(png_file(width, height, type, rows, {.bits = bits, .interlaced = interlaced}), width, height, pixels);
      }
  }
}

TEST_CASE("JPEG files: grey, RGB, progressive, CMYK") {
  constexpr int w = 37, h = 21;
  const bytes grey = picture(w, h, 1), rgb = picture(w, h, 3);
  bytes grey_as_rgb, grey_as_rgba;
  for (const bool progressive : {false, true}) {
    const bytes file = jpeg_file(w, h, JCS_GRAYSCALE, grey, {.quality = 100, .progressive = progressive});
    const bytes read = decoded(file, 1, w, h), read3 = decoded(file, 3, w, h), read4 = decoded(file, 4, w, h);
    CHECK(worst(read, grey) <= 3);
    for (std::size_t i = 0; i < read.size(); ++i) {
      REQUIRE(bytes(read3.begin() + 3 * std::ptrdiff_t(i), read3.begin() + 3 * std::ptrdiff_t(i) + 3) == bytes(3, read[i]));
      REQUIRE(bytes(read4.begin() + 4 * std::ptrdiff_t(i), read4.begin() + 4 * std::ptrdiff_t(i) + 4) ==
              bytes{read[i], read[i], read[i], 255});
    }
  }
  // A baseline and a progressive file of the same picture have the same coefficients.
  const bytes baseline = jpeg_file(w, h, JCS_RGB, rgb), progressive = jpeg_file(w, h, JCS_RGB, rgb, {.progressive = true});
  REQUIRE(baseline != progressive);
  for (const int channels : {1, 3, 4}) CHECK(decoded(baseline, channels, w, h) == decoded(progressive, channels, w, h));
  const bytes read = decoded(baseline, 3, w, h), read4 = decoded(baseline, 4, w, h), luminance = decoded(baseline, 1, w, h);
  for (std::size_t i = 0; i < std::size_t{w * h}; ++i) {
    for (std::size_t c = 0; c < 3; ++c) REQUIRE(read4[4 * i + c] == read[3 * i + c]);
    REQUIRE(read4[4 * i + 3] == 255);
  }
  // Smooth colours are nearly unchanged.
  bytes smooth;
  for (int i = 0; i < w * h; ++i)
    for (const int v : {i % w * 5, i / w * 9, 120}) smooth.push_back(static_cast<std::uint8_t>(v));
  const bytes smooth_file = jpeg_file(w, h, JCS_RGB, smooth, {.quality = 100});
  CHECK(worst(decoded(smooth_file, 3, w, h), smooth) <= 12);
  bytes smooth_grey;
  for (std::size_t i = 0; i < smooth.size(); i += 3) smooth_grey.push_back(luma(smooth[i], smooth[i + 1], smooth[i + 2]));
  CHECK(worst(decoded(smooth_file, 1, w, h), smooth_grey) <= 4);

  // CMYK, as it is and inverted, as Adobe writes it.
  for (const bool adobe : {false, true}) {
    CAPTURE(adobe);
    bytes ink;
    for (int i = 0; i < w * h; ++i)
      for (const int v : {i % w * 5, i / w * 9, 120, 40}) ink.push_back(static_cast<std::uint8_t>(adobe ? 255 - v : v));
    const bytes file = jpeg_file(w, h, JCS_CMYK, ink, {.quality = 100, .adobe = adobe});
    const bytes colours = decoded(file, 3, w, h), with_opacity = decoded(file, 4, w, h), greys = decoded(file, 1, w, h);
    for (std::size_t i = 0; i < std::size_t{w * h}; ++i) {
      const int wanted[] = {int(i) % w * 5, int(i) / w * 9, 120};
      for (std::size_t c = 0; c < 3; ++c) {
        REQUIRE(std::abs(colours[3 * i + c] - (255 - wanted[c]) * 215 / 255) <= 6);
        REQUIRE(with_opacity[4 * i + c] == colours[3 * i + c]);
      }
      REQUIRE(with_opacity[4 * i + 3] == 255);
      REQUIRE(greys[i] == luma(colours[3 * i], colours[3 * i + 1], colours[3 * i + 2]));
    }
  }
}

TEST_CASE("a file is what it begins with, whatever its name; memory is used again") {
  const image_folder f;
  const auto path = f.put("misnamed.jpg", png_file(width, height, PNG_COLOR_TYPE_GRAY, picture(width, height, 1)));
  data::image image;
  data::read_image(path, 3, image);
  const std::uint8_t* memory = image.values.data();
  data::read_image(f.put("small.png", png_file(2, 3, PNG_COLOR_TYPE_GRAY, picture(2, 3, 1))), 3, image);
  CHECK(image.height == 3);
  CHECK(image.values.size() == 18);
  data::read_image(path, 3, image);
  CHECK(image.values.data() == memory);
  CHECK(data::read_image(path).values == image.values);
  const auto pixels = std::uint64_t(image.height) * std::uint64_t(image.width);
  CHECK(data::read_image(path, 3, pixels).values == image.values);
  CHECK(error_of([&] { (void)data::read_image(path, 3, pixels - 1); }).ends_with("pixels, which max_pixels forbids"));
}

TEST_CASE("write_png: what is written is read") {
  const image_folder f;
  const auto check = [&]<int Channels>() {
    constexpr shape s{5, 7, Channels};
    std::vector<float> values(std::size_t{s.size()});
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 41 % 300) - 20.25f;
    data::write_png(f.path / "out.png", tensor<const float, s>{values.data()});
    const data::image read = data::read_image(f.path / "out.png", Channels);
    REQUIRE(read.height == 5);
    for (std::size_t i = 0; i < values.size(); ++i)
      REQUIRE(std::abs(read.values[i] - std::clamp(values[i], 0.0f, 255.0f)) <= 0.5f);
  };
  check.operator()<1>();
  check.operator()<3>();
  check.operator()<4>();
  const std::array<std::uint8_t, 4> bytes{0, 1, 254, 255};
  CHECK(error_of([&] { data::write_png(f.path / "none" / "x.png", tensor<const std::uint8_t, shape{2, 2, 1}>{bytes.data()}); }) !=
        "no error");
  data::write_png(f.path / "bytes.png", tensor<const std::uint8_t, shape{2, 2, 1}>{bytes.data()});
  CHECK(data::read_image(f.path / "bytes.png", 1).values == test::bytes(bytes.begin(), bytes.end()));
}

TEST_CASE("what is wrong with a file") {
  const image_folder f;
  const auto complaint = [&](const bytes& content) {
    const auto path = f.put("bad.png", content);
    const std::string text = error_of([&] { (void)data::read_image(path); });
    REQUIRE(text.starts_with(path.string() + ": "));
    return text.substr(path.string().size() + 2);
  };
  CHECK(complaint({}) == "the file is empty");
  CHECK(complaint({'G', 'I', 'F', '8', '9', 'a'}) == "neither a PNG nor a JPEG file");
  CHECK(error_of([&] { (void)data::read_image(f.path / "none.png"); }) ==
        "cannot read " + (f.path / "none.png").string() + ": No such file or directory");
  CHECK(error_of([&] { (void)data::read_image(f.path); }) == "cannot read " + f.path.string() + ": Is a directory");
  const bytes png = png_file(width, height, PNG_COLOR_TYPE_RGB, picture(width, height, 3));
  data::image image;
  CHECK(error_of([&] { data::decode_image(png, 2, image, "cat.png"); }) ==
        "cat.png: an image is read with 1, 3 or 4 channels, not with 2");

  // Files that are truncated anywhere.
  for (const bytes& file :
       {png, png_file(width, height, PNG_COLOR_TYPE_RGB, picture(width, height, 3), {.interlaced = true}),
        jpeg_file(37, 21, JCS_RGB, picture(37, 21, 3)), jpeg_file(37, 21, JCS_RGB, picture(37, 21, 3), {.progressive = true}),
        jpeg_file(37, 21, JCS_CMYK, picture(37, 21, 4))})
    for (std::size_t length = 0; length < file.size(); ++length) {
      const std::string text = error_of([&] { data::decode_image({file.data(), length}, 3, image, "short"); });
      CAPTURE(length);
      REQUIRE(text.starts_with("short: "));
      REQUIRE(text.size() > 10);
    }

  // Wrong checksums, and wrong pixels.
  bytes damaged = png;
  damaged[png.size() - 14] ^= 1;
  CHECK(complaint(damaged) == "IDAT: CRC error");
  damaged = png;
  damaged[60] ^= 1;
  CHECK(complaint(damaged) != "no error");

  // More pixels than memory, and more than such a file can hold. (The checksum of the header counts, too.)
  const auto sized_png = [&](std::uint32_t w, std::uint32_t h) {
    bytes file = png;
    for (int i = 0; i < 4; ++i) {
      file[std::size_t(16 + i)] = static_cast<std::uint8_t>(w >> (24 - 8 * i));
      file[std::size_t(20 + i)] = static_cast<std::uint8_t>(h >> (24 - 8 * i));
    }
    const auto sum = static_cast<std::uint32_t>(crc32(0, file.data() + 12, 17));
    for (int i = 0; i < 4; ++i) file[std::size_t(29 + i)] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    return file;
  };
  CHECK(complaint(sized_png(100'000, 100'000)) ==
        "an image of 100000 x 100000 pixels: more than 134217728 pixels, which max_pixels forbids");
  CHECK(error_of([&] { data::decode_image(png, 3, image, "cat.png", width * height - 1); }) ==
        "cat.png: an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels: more than " +
            std::to_string(width * height - 1) + " pixels, which max_pixels forbids");
  data::decode_image(png, 3, image, "cat.png", width * height);
  CHECK(image.height == height);
  CHECK(complaint(sized_png(10'000, 10'000)) ==
        "an image of 10000 x 10000 pixels: the file, " + std::to_string(png.size()) + " bytes, is too short for that many");
}

TEST_CASE("bytes that anybody may have changed: an image or an error, and not a word on stderr") {
  const image_folder f;
  const int kept = ::dup(2), log = ::open((f.path / "stderr").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(::dup2(log, 2) == 2);
  png_color_16 key{};
  const std::vector<bytes> files{
      png_file(width, height, PNG_COLOR_TYPE_RGB, picture(width, height, 3)),
      png_file(width, height, PNG_COLOR_TYPE_GRAY, picture(2 * width, height, 1),
               {.bits = 16, .interlaced = true, .transparent = &key}),
      png_file(width, height, PNG_COLOR_TYPE_PALETTE, picture((width + 1) / 2, height, 1),
               {.bits = 4, .palette = std::vector<png_color>(16, png_color{1, 2, 3}), .palette_opacity = {1, 2, 3}}),
      jpeg_file(37, 21, JCS_RGB, picture(37, 21, 3)),
      jpeg_file(37, 21, JCS_RGB, picture(37, 21, 3), {.progressive = true}),
      jpeg_file(37, 21, JCS_GRAYSCALE, picture(37, 21, 1), {.progressive = true}),
      jpeg_file(19, 21, JCS_CMYK, picture(19, 21, 4)),
  };
  unsigned state = 1;
  const auto below = [&](std::size_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
  };
  int images = 0, errors = 0, unexpected = 0;
  data::image image;
  for (int i = 0; i < 6000; ++i) {
    bytes file = files[below(files.size())];
    for (std::size_t changes = 1 + below(4); changes > 0 && file.size() > 16; --changes) switch (below(4)) {
        case 0:
          file[below(file.size())] = static_cast<std::uint8_t>(below(256));
          break;
        case 1:
          file[below(file.size())] ^= static_cast<std::uint8_t>(1 << below(8));
          break;
        case 2:
          file.erase(file.begin() + std::ptrdiff_t(below(file.size() - 8)), file.end() - std::ptrdiff_t(below(8)));
          break;
        default: {
          const auto at = std::ptrdiff_t(below(file.size()));
          file.insert(file.begin() + at, 1 + below(20), static_cast<std::uint8_t>(below(256)));
        }
      }
    // Half of the PNG files get correct checksums again; otherwise nothing after the checksums would ever be read.
    if (file.size() > 8 && file[0] == 0x89 && below(2) == 0)
      for (std::size_t at = 8; at + 12 <= file.size();) {
        const std::size_t size =
            std::size_t{file[at]} << 24 | std::size_t{file[at + 1]} << 16 | std::size_t{file[at + 2]} << 8 | file[at + 3];
        if (size > file.size() - at - 12) break;
        const auto sum = static_cast<std::uint32_t>(crc32(0, file.data() + at + 4, static_cast<unsigned>(size + 4)));
        for (std::size_t k = 0; k < 4; ++k) file[at + 8 + size + k] = static_cast<std::uint8_t>(sum >> (24 - 8 * k));
        at += size + 12;
      }
    static constexpr int channels[] = {1, 3, 4};
    const int c = channels[below(3)];
    try {
      data::decode_image(file, c, image, "changed");
      ++images;
      unexpected += image.values.size() != std::size_t(image.height) * std::size_t(image.width) * std::size_t(c);
    } catch (const strata_error& e) {
      ++errors;
      unexpected += !std::string(e.what()).starts_with("changed: ");
    }
  }
  REQUIRE(::dup2(kept, 2) == 2);
  ::close(kept);
  CHECK(unexpected == 0);
  CHECK(images > 100);
  CHECK(errors > 100);
  CHECK(::lseek(log, 0, SEEK_END) == 0);
  ::close(log);
  // The decoder of this thread still works.
  CHECK(decoded(files[3], 3, 37, 21).size() == 37 * 21 * 3);
}

TEST_CASE("several threads read at once") {
  const image_folder f;
  const auto png = f.put("a.png", png_file(width, height, PNG_COLOR_TYPE_RGB, picture(width, height, 3)));
  const auto jpeg = f.put("b.jpg", jpeg_file(37, 21, JCS_RGB, picture(37, 21, 3)));
  const bytes first = data::read_image(png).values, second = data::read_image(jpeg).values;
  std::array<bool, 4> same{};
  std::vector<std::thread> threads;
  for (bool& mine : same)
    threads.emplace_back([&] {
      mine = true;
      data::image image;
      for (int i = 0; i < 50; ++i) {
        data::read_image(png, 3, image);
        mine = mine && image.values == first;
        data::read_image(jpeg, 3, image);
        mine = mine && image.values == second;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(same == std::array{true, true, true, true});
}
