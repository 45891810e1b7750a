#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <strata/data/formats/idx.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
struct folder {
  fs::path path = fs::temp_directory_path() / ("strata-idx-" + std::to_string(getpid()));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
};

using bytes = std::vector<std::uint8_t>;

bytes header(int type, std::vector<std::uint32_t> dimensions) {
  bytes b{0, 0, std::uint8_t(type), std::uint8_t(dimensions.size())};
  for (const std::uint32_t d : dimensions)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(std::uint8_t(d >> shift));
  return b;
}
bytes operator+(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
fs::path raw(const fs::path& path, const bytes& b) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(b.data()), std::streamsize(b.size()));
  return path;
}
fs::path zipped(const fs::path& path, const bytes& b) {
  gzFile f = gzopen(path.string().c_str(), "wb");
  REQUIRE(gzwrite(f, b.data(), unsigned(b.size())) == int(b.size()));
  REQUIRE(gzclose(f) == Z_OK);
  return path;
}
/// The error of reading b as (samples, 2, 3) bytes, without the directory.
std::string complaint(const folder& f, const bytes& b, bool zip = false) {
  const fs::path path = zip ? zipped(f.path / "bad.gz", b) : raw(f.path / "bad", b);
  try {
    data::read_idx<std::uint8_t, shape{2, 3, 1}>(path);
  } catch (const strata_error& e) {
    const std::string text = e.what(), start = (f.path / "").string();
    REQUIRE(text.starts_with(start));
    return text.substr(start.size());
  }
  return "";
}
const bytes twelve{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
}  // namespace

TEST_CASE("raw and gzipped files read the same") {
  const folder f;
  const bytes content = header(8, {2, 2, 3}) + twelve;
  for (const fs::path& path :
       {raw(f.path / "a", content), zipped(f.path / "a.gz", content), raw(f.path / "misnamed.gz", content)}) {
    const auto images = data::read_idx<std::uint8_t, shape{2, 3, 1}>(path);
    CHECK(images.size() == 2);
    CHECK(bytes(images.values().begin(), images.values().end()) == twelve);
    CHECK(images[1](1, 2, 0) == 12);
    CHECK(data::read_idx<std::uint8_t, shape{2, 3}>(path).size() == 2);
    const data::idx<std::uint8_t> any = data::read_idx<std::uint8_t>(path);
    CHECK(any.dimensions == std::vector<std::uint32_t>{2, 2, 3});
    CHECK(bytes(any.values().begin(), any.values().end()) == twelve);
  }
  const auto four = data::read_idx<std::uint8_t, shape{2, 3, 1}>(raw(f.path / "four", header(8, {2, 2, 3, 1}) + twelve));
  CHECK(four.size() == 2);
}

TEST_CASE("all element types, big endian") {
  const folder f;
  const auto read = [&]<class T>(T, int type, const bytes& values) {
    return data::read_idx<T>(zipped(f.path / "t.gz", header(type, {std::uint32_t(values.size() / sizeof(T))}) + values))
        .values()[1];
  };
  CHECK(read(std::int8_t{}, 9, {1, 0xFE}) == -2);
  CHECK(read(std::int16_t{}, 11, {0, 0, 0xFF, 0xFE}) == -2);
  CHECK(read(std::int32_t{}, 12, {0, 0, 0, 0, 0, 1, 0, 2}) == 65538);
  CHECK(read(float{}, 13, {0, 0, 0, 0, 0x3F, 0xC0, 0, 0}) == 1.5f);
  CHECK(read(double{}, 14, bytes(8) + bytes{0xC0, 0x04, 0, 0, 0, 0, 0, 0}) == -2.5);
}

TEST_CASE("a large file of several reads") {
  const folder f;
  bytes values(5'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::uint8_t(i * i >> 7);
  const auto all = data::read_idx<std::uint8_t, shape{1000}>(zipped(f.path / "big.gz", header(8, {5000, 1000}) + values));
  CHECK(all.size() == 5000);
  CHECK(std::equal(values.begin(), values.end(), all.values().begin()));
}

TEST_CASE("a gzipped file expands as far as the limits allow") {
  const folder f;
  const auto path = zipped(f.path / "zeros.gz", header(8, {30'000, 1000}) + bytes(30'000'000));
  CHECK(error_of([&] { (void)data::read_idx<std::uint8_t>(path); })
            .ends_with("the data are more than 200 times as long as the file of " + std::to_string(fs::file_size(path)) +
                       " bytes, which max_compression_ratio forbids"));
  CHECK(data::read_idx<std::uint8_t>(path, {.max_compression_ratio = 1032}).size == 30'000'000);
}

TEST_CASE("what is wrong with a file, and where") {
  const folder f;
  const bytes good = header(8, {2, 2, 3}) + twelve;
  CHECK(complaint(f, good) == "");
  CHECK(complaint(f, {}) == "bad: byte 0: the file ends, expected 4 bytes, got 0");
  CHECK(complaint(f, {0, 0, 8}) == "bad: byte 3: the file ends, expected 4 bytes, got 3");
  CHECK(complaint(f, bytes{1, 0, 8, 3} + good) == "bad: byte 0: an IDX file starts with bytes 0 0, got 1 0");
  CHECK(complaint(f, header(13, {2, 2, 3}) + twelve) == "bad: byte 2: element type: expected 8 (uint8), got 13 (float)");
  CHECK(complaint(f, header(10, {2, 2, 3}) + twelve) == "bad: byte 2: element type: expected 8 (uint8), got 10 (unknown)");
  CHECK(complaint(f, header(8, {12}) + twelve) == "bad: byte 3: rank: expected 4 for samples of shape (2, 3, 1), got 1");
  CHECK(complaint(f, header(8, {}) + twelve) == "bad: byte 3: rank: expected at least 1, got 0");
  CHECK(complaint(f, header(8, {2, 3, 2}) + twelve) == "bad: byte 8: dimension 1: expected 2, got 3");
  CHECK(complaint(f, header(8, {2, 2, 4}) + twelve) == "bad: byte 12: dimension 2: expected 3, got 4");
  CHECK(complaint(f, bytes(good.begin(), good.begin() + 10)) == "bad: byte 10: the file ends, expected 12 bytes, got 10");
  CHECK(complaint(f, good + bytes{0}) == "bad: byte 28: bytes follow the last value");
  CHECK(complaint(f, bytes(good.begin(), good.end() - 1)) ==
        "bad: byte 12: dimension 2 is 3: the file, 27 bytes, is too short for that many values");
  CHECK(complaint(f, header(8, {0xFFFFFFFF, 2, 3}) + twelve) ==
        "bad: byte 4: dimension 0 is 4294967295: the file, 28 bytes, is too short for that many values");

  CHECK(complaint(f, good + bytes{0}, true) == "bad.gz: byte 28 of the decompressed data: bytes follow the last value");
  CHECK(complaint(f, bytes(good.begin(), good.end() - 1), true) ==
        "bad.gz: byte 27 of the decompressed data: the file ends, expected 28 bytes, got 27");
}

TEST_CASE("damaged compression") {
  const folder f;
  bytes values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::uint8_t(i * 2654435761u >> 24);
  const fs::path path = zipped(f.path / "b.gz", header(8, {10'000}) + values);
  bytes content(fs::file_size(path));
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(content.data()), std::streamsize(content.size()));

  raw(path, bytes(content.begin(), content.end() - 100));
  CHECK(error_of([&] {
          (void)data::read_idx<std::uint8_t>(path);
        }).find("of the decompressed data: the compressed data end too early") != std::string::npos);
  content[content.size() - 6] ^= 1;  // the checksum
  raw(path, content);
  CHECK(error_of([&] { (void)data::read_idx<std::uint8_t>(path); }).find("incorrect data check") != std::string::npos);
}

TEST_CASE("files that cannot be read") {
  const folder f;
  CHECK(error_of([&] { (void)data::read_idx<float>(f.path / "none"); }) ==
        "cannot read " + (f.path / "none").string() + ": No such file or directory");
  CHECK(error_of([&] { (void)data::read_idx<float>(f.path); }) == "cannot read " + f.path.string() + ": Is a directory");
}
