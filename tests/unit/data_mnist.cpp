#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <strata/data/sets/find_mnist.hpp>
#include <strata/data/sets/mnist.hpp>
#include <strata/data/sets/synthetic_digits.hpp>
#include <strata/data/views/batch.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;
namespace fs = std::filesystem;

namespace {
struct folder {
  fs::path path = fs::temp_directory_path() / ("strata-mnist-" + std::to_string(getpid()));
  folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~folder() { fs::remove_all(path); }
  fs::path operator/(const char* name) const { return path / name; }
};

/// Sets an environment variable during its lifetime.
struct variable {
  std::string name;
  std::optional<std::string> before;
  variable(const char* n, const std::string& value) : name(n) {
    if (const char* v = std::getenv(n)) before = v;
    setenv(n, value.c_str(), 1);
  }
  ~variable() { before ? setenv(name.c_str(), before->c_str(), 1) : unsetenv(name.c_str()); }
};

using bytes = std::vector<std::uint8_t>;

bytes images(std::uint8_t n, std::uint8_t value) {
  const std::array<std::uint8_t, 16> header{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 28, 0, 0, 0, 28};
  bytes b(header.size() + n * 784u, value);
  std::copy(header.begin(), header.end(), b.begin());
  return b;
}
bytes labels(const bytes& values) {
  const std::array<std::uint8_t, 8> header{0, 0, 8, 1, 0, 0, 0, std::uint8_t(values.size())};
  bytes b(header.size() + values.size());
  std::copy(values.begin(), values.end(), std::copy(header.begin(), header.end(), b.begin()));
  return b;
}
void raw(const fs::path& path, const bytes& b) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(b.data()), std::streamsize(b.size()));
}
void zipped(const fs::path& path, const bytes& b) {
  gzFile f = gzopen(path.c_str(), "wb");
  gzwrite(f, b.data(), unsigned(b.size()));
  gzclose(f);
}
void write_all(const fs::path& d) {
  zipped(d / "train-images-idx3-ubyte.gz", images(3, 255));
  raw(d / "train-labels-idx1-ubyte", labels({0, 9, 5}));
  raw(d / "t10k-images-idx3-ubyte", images(2, 51));
  zipped(d / "t10k-labels-idx1-ubyte.gz", labels({1, 2}));
}
}  // namespace

static_assert(std::same_as<decltype(data::train_and_test::train), decltype(data::synthetic_digits(1))>);
static_assert(data::sample_view<data::digits> && std::ranges::random_access_range<data::digits>);
static_assert(data::rows_t<data::digits>::sample_shape == shape{28, 28, 1});

TEST_CASE("mnist gives two views, scaled, with labels") {
  const folder d;
  write_all(d.path);
  auto [train, test] = data::mnist(d.path);
  CHECK(train.size() == 3);
  CHECK(test.size() == 2);
  auto batches = train | data::batch<3>;
  const samples<float> b = *batches.begin();
  CHECK(b.x()[0] == doctest::Approx(1));
  CHECK(b.x()[3 * 784 - 1] == doctest::Approx(1));
  CHECK(std::vector<int>(b.labels(), b.labels() + 3) == std::vector{0, 9, 5});
  auto tests = test | data::batch<2>;
  CHECK((*tests.begin()).x()[5] == doctest::Approx(0.2));
}

TEST_CASE("mnist says what is missing or does not fit") {
  const folder d;
  const std::string at = d.path.string();
  write_all(d.path);
  raw(d / "train-labels-idx1-ubyte", labels({0, 9, 10}));
  CHECK(error_of([&] { (void)data::mnist(d.path); }) ==
        "mnist: " + at + "/train-labels-idx1-ubyte: label of sample 2: expected 0 ... 9, got 10");
  raw(d / "train-labels-idx1-ubyte", labels({0, 9}));
  CHECK(error_of([&] { (void)data::mnist(d.path); }) ==
        "mnist: " + at + "/train-images-idx3-ubyte.gz has 3 images, but " + at + "/train-labels-idx1-ubyte has 2 labels");
  fs::remove(d / "train-labels-idx1-ubyte");
  CHECK(error_of([&] { (void)data::mnist(d.path); }) ==
        "mnist: there is neither " + at + "/train-labels-idx1-ubyte nor train-labels-idx1-ubyte.gz");
  CHECK(error_of([&] { (void)data::mnist(std::nullopt); }).find("mnist: no directory") != std::string::npos);
}

TEST_CASE("find_mnist looks in the directory it is given, the variable, the cache") {
  const folder d;
  const variable cache("XDG_CACHE_HOME", (d / "cache").string()), none("STRATA_DATA", "");
  std::ostringstream log;
  CHECK(!data::find_mnist({.directory = d.path, .download = false, .log = &log}));
  CHECK(log.str() == "find_mnist: " + d.path.string() + " has no train-images-idx3-ubyte and no train-images-idx3-ubyte.gz\n");
  CHECK(!data::find_mnist({.download = false}));

  const fs::path in_cache = d.path / "cache" / "strata" / "mnist", in_data = d.path / "data" / "mnist", given = d.path / "given";
  for (const fs::path& p : {in_cache, in_data, given}) fs::create_directories(p);
  write_all(in_cache);
  CHECK(data::find_mnist({.download = false}) == in_cache);
  {
    const variable data_directory("STRATA_DATA", (d / "data").string());
    CHECK(data::find_mnist({.download = false}) == in_cache);
    write_all(in_data);
    CHECK(data::find_mnist({.download = false}) == in_data);
    const variable exactly("STRATA_DATA", in_data.string());
    CHECK(data::find_mnist({.download = false}) == in_data);
    CHECK(!data::find_mnist({.directory = given}));  // a directory by name is not replaced by another
    write_all(given);
    CHECK(data::find_mnist({.directory = given}) == given);
  }
  const variable relative("XDG_CACHE_HOME", "not/absolute"), home("HOME", (d / "home").string());
  fs::create_directories(d / "home/.cache/strata/mnist");
  write_all(d / "home/.cache/strata/mnist");
  CHECK(data::find_mnist({.download = false}) == d.path / "home/.cache/strata/mnist");
}

TEST_CASE("downloads are verified, and appear as a whole or not at all") {
  const folder d;
  // A curl that serves files of a directory per host, or fails with status 22.
  const fs::path bin = d.path / "bin", cache = d.path / "cache", target = cache / "strata" / "mnist";
  fs::create_directories(bin);
  std::ofstream(bin / "curl") << "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n"
                              << "cp \"" << d.path.string() << "/${1#https://}\" \"$out\" 2>/dev/null || exit 22\n";
  fs::permissions(bin / "curl", fs::perms::owner_all);
  const variable path("PATH", bin.string() + ":" + std::getenv("PATH")), xdg("XDG_CACHE_HOME", cache.string()),
      none("STRATA_DATA", "");

  const bytes a = images(2, 7), b = labels({1, 2});
  const auto sum = [](const bytes& content) {
    io::sha256 s;
    s.update(content);
    return s.hex();
  };
  const std::vector<data::detail::known_file> files{{"a", a.size(), sum(a)}, {"b", b.size(), sum(b)}};
  const std::vector<std::string> mirrors{"https://one/", "https://two/"};
  std::ostringstream log;
  const auto find = [&] {
    log.str("");
    return data::detail::find_files({.log = &log}, files, mirrors);
  };
  const auto in_target = [&] { return std::distance(fs::directory_iterator(target), fs::directory_iterator()); };

  CHECK(!find());
  CHECK(log.str() ==
        "find_mnist: " + target.string() + " has no a and no a.gz\n" +
            "find_mnist: https://one/a.gz: curl ended with status 22\nfind_mnist: https://two/a.gz: curl ended with status 22\n");
  CHECK(in_target() == 0);

  for (const char* host : {"one", "two"}) fs::create_directories(d / host);
  zipped(d / "one/a.gz", images(2, 8));  // not what it should be
  zipped(d / "two/a.gz", images(1, 7));
  CHECK(!find());
  CHECK(log.str().find("https://one/a.gz: not the file that was expected: expected SHA-256 " + sum(a) + ", got " +
                       sum(images(2, 8))) != std::string::npos);
  CHECK(log.str().find("https://two/a.gz: not the file that was expected: expected 1584 bytes, got 800") != std::string::npos);
  CHECK(in_target() == 0);

  zipped(d / "two/a.gz", a);
  CHECK(!find());  // b is still missing; a is complete and stays
  CHECK(in_target() == 1);
  zipped(d / "one/b.gz", b);
  CHECK(find() == target);
  CHECK(in_target() == 2);
  CHECK(data::detail::difference(target / "a.gz", files[0]) == "");
  fs::remove_all(d / "one");
  CHECK(find() == target);  // no download any more
  CHECK(log.str() == "");

  fs::remove(target / "a.gz");
  const variable no_curl("PATH", (d / "two").string());
  CHECK(!find());
  CHECK(log.str().find("https://one/a.gz: curl cannot be run: No such file or directory") != std::string::npos);
}
