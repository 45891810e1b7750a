// needs: libzip
#include <doctest/doctest.h>
#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <strata/base/random.hpp>
#include <strata/data/formats/npz.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
struct set {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  std::vector<std::uint8_t> none;

  set() : x(1200), y(200) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.5f * float(i % 37);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::int64_t(i % 10);
  }
  void save(const std::filesystem::path& path, data::npz_options options = {}) const {
    data::save_npz(path, {{"x", {x, {200, 2, 3}}}, {"y", y}, {"none", none}}, options);
  }
};
template <class T, shape S>
std::vector<T> values_of(const data::array<T, S>& a) {
  return {a.values().begin(), a.values().end()};
}
/// The position of the bytes `what`.
std::size_t find(const bytes& in, const bytes& what) {
  return std::size_t(std::search(in.begin(), in.end(), what.begin(), what.end()) - in.begin());
}
}  // namespace

TEST_CASE("what is written is read again, stored and compressed") {
  const scratch_folder f("npz");
  const set s;
  for (const bool compressed : {false, true}) {
    s.save(f / "a.npz", {.compressed = compressed});
    const auto file = data::load_npz(f / "a.npz");
    CHECK(file.names() == std::vector<std::string>{"x", "y", "none"});
    CHECK(values_of(file.load<float, shape{2, 3, 1}>("x")) == s.x);
    CHECK(values_of(file.load<double, shape{2, 3}>("x")) == std::vector<double>(s.x.begin(), s.x.end()));
    CHECK(values_of(file.load<std::int64_t, shape{}>("y")) == s.y);
    CHECK(values_of(file.load<std::int32_t, shape{}>("y")) == std::vector<std::int32_t>(s.y.begin(), s.y.end()));
    CHECK(file.load<std::uint8_t, shape{}>("none").empty());
    const auto first = file.load<float, shape{2, 3}>("x"), second = file.load<float, shape{2, 3}>("x");
    CHECK(values_of(first) == values_of(second));
    CHECK((std::filesystem::file_size(f / "a.npz") < 3000) == compressed);
  }
}

TEST_CASE("an array outlives the archive, and the file may be replaced meanwhile") {
  const scratch_folder f("npz");
  const set s;
  s.save(f / "a.npz");
  data::array<float, shape{6}> x;
  {
    const auto file = data::load_npz(f / "a.npz");
    CHECK_THROWS_AS((void)(file.load<float, shape{6}>("x")), strata_error);  // (200, 2, 3)
    data::save_npz(f / "a.npz", {{"x", {s.x, {200, 6}}}});
    CHECK(data::load_npz(f / "a.npz").names().size() == 1);
    CHECK(values_of(file.load<std::int64_t, shape{}>("y")) == s.y);  // still the old file
  }
  x = data::load_npz(f / "a.npz").load<float, shape{6}>("x");
  std::filesystem::remove(f / "a.npz");
  CHECK(values_of(x) == s.x);
}

TEST_CASE("an array expands as far as the limits allow") {
  const scratch_folder f("npz");
  const std::vector<float> zeros(6'000'000);
  data::save_npz(f / "zeros.npz", {{"x", zeros}}, {.compressed = true});
  const std::string words = f.without_folder(error_of([&] { (void)data::load_npz(f / "zeros.npz").load<float, shape{}>("x"); }));
  CHECK(words == "zeros.npz: x.npy: 24000128 bytes are more than 200 times the archive of " +
                     std::to_string(std::filesystem::file_size(f / "zeros.npz")) + ", which max_compression_ratio forbids");
  CHECK(data::load_npz(f / "zeros.npz", {.max_compression_ratio = 1032}).load<float, shape{}>("x").size() == 6'000'000);
}

TEST_CASE("what is wrong, and in which member") {
  const scratch_folder f("npz");
  const set s;
  const auto path = f / "a.npz";
  const auto complaint = [&](auto&& what) { return f.without_folder(error_of(what)); };
  s.save(path);
  const auto file = data::load_npz(path);
  CHECK(complaint([&] { (void)file.load<float, shape{6}>("z"); }) == "a.npz: there is no array 'z', but x, y, none");
  CHECK(complaint([&] { (void)file.load<float, shape{7}>("x"); }) ==
        "a.npz: x.npy: byte 60: shape: expected any number of samples of shape (7,), got (200, 2, 3)");
  CHECK(complaint([&] { data::save_npz(path, {{"x", s.x}, {"x", s.x}}); }) ==
        "cannot write a.npz: array 'x': File already exists");
  CHECK(complaint([&] { data::save_npz(path, {}); }) == "cannot write a.npz: an archive needs at least one array");
  CHECK(data::load_npz(path).names().size() == 3);  // both left the older file as it was
  CHECK(complaint([&] { data::save_npz(f / "no" / "a.npz", {{"x", s.x}}); }).find("cannot write no/a.npz: No such file") == 0);

  CHECK(complaint([&] { (void)data::load_npz(f / "none.npz"); }) == "cannot read none.npz: No such file or directory");
  f.write("text.npz", std::string("no archive"));
  CHECK(complaint([&] { (void)data::load_npz(f / "text.npz"); }) == "text.npz: not a .npz archive: Not a zip archive");
  f.write("empty.npz", std::string());
  CHECK(complaint([&] { (void)data::load_npz(f / "empty.npz"); }).find("empty.npz: not a .npz archive: ") == 0);

  bytes content = f.read("a.npz");
  content[find(content, bytes_of("NUMPY")) + 200] ^= 1;
  f.write("crc.npz", content);
  CHECK(complaint([&] { (void)data::load_npz(f / "crc.npz").load<float, shape{2, 3}>("x"); }) ==
        "crc.npz: x.npy: byte 4928: CRC error");
  CHECK(data::load_npz(f / "crc.npz").load<std::int64_t, shape{}>("y").size() == 200);

  // A directory that declares four terabytes.
  content = f.read("a.npz");
  const std::size_t directory = find(content, {'P', 'K', 1, 2});
  for (const std::size_t at : {directory + 20, directory + 24}) content[at + 3] = 0xF0;
  f.write("large.npz", content);
  CHECK(error_of([&] { (void)data::load_npz(f / "large.npz").load<float, shape{2, 3}>("x"); }) != "no error");
}

TEST_CASE("a damaged archive is read or refused, never more") {
  const scratch_folder f("npz");
  const set s;
  int read = 0, refused = 0;
  for (const bool compressed : {false, true}) {
    s.save(f / "whole.npz", {.compressed = compressed});
    const bytes whole = f.read("whole.npz");
    const auto attempt = [&](const bytes& content) {
      const auto path = f.write("m.npz", content);
      try {
        const auto file = data::load_npz(path);
        const auto x = file.load<float, shape{2, 3}>("x");
        const auto y = file.load<float, shape{}>("y");
        float sum = 0;
        for (const float v : x.values()) sum += v;
        for (const float v : y.values()) sum += v;
        read += sum == sum || sum != sum;
      } catch (const strata_error& e) {
        CHECK(std::string(e.what()).find(path.string()) != std::string::npos);
        ++refused;
      }
    };
    for (std::size_t n = 0; n < whole.size(); n += 7) attempt(bytes(whole.begin(), whole.begin() + std::ptrdiff_t(n)));
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const auto r = philox{2}(i, compressed);
      bytes content = whole;
      // In the directory at the end, or anywhere.
      const std::size_t at = i % 2 ? content.size() - 1 - r[0] % 250 : r[0] % content.size();
      content[at] = std::uint8_t(r[1]);
      if (r[2] % 4 == 0) content[r[3] % content.size()] ^= std::uint8_t(1u << r[1] % 8);
      attempt(content);
    }
  }
  CHECK(read > 100);
  CHECK(refused > 1000);
}

TEST_CASE("an array that comes twice is refused when it is asked for; names are shown as what they are") {
  const scratch_folder f("npz");
  const std::vector<float> one{1}, two{2}, three{3};
  data::save_npz(f / "a.npz", {{"first", one}, {"secnd", two}, {"\u200bx", three}});
  bytes file = f.read("a.npz");
  const bytes from = bytes_of("secnd.npy"), to = bytes_of("first.npy");
  for (std::size_t at; (at = find(file, from)) < file.size();) std::ranges::copy(to, file.begin() + std::ptrdiff_t(at));
  const auto archive = data::load_npz(f.write("a.npz", file));
  CHECK(values_of(archive.load<float, shape{}>("\u200bx")) == three);
  CHECK(f.without_folder(error_of([&] { archive.load<float, shape{}>("first"); })) == "a.npz: there are several arrays 'first'");
  CHECK(f.without_folder(error_of([&] { archive.load<float, shape{2}>("\u200bx"); })).starts_with("a.npz: \\u200bx.npy: "));
  CHECK(f.without_folder(error_of([&] { archive.load<float, shape{}>("x"); })) ==
        "a.npz: there is no array 'x', but first, first, \\u200bx");
}
