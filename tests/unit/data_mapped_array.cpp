#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <strata/base/random.hpp>
#include <strata/data/formats/npy.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/mapped_array.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// The bytes of files that are resident in the memory of this process.
std::uint64_t resident_file_bytes() {
  unsigned long total = 0, resident = 0, of_files = 0;
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  REQUIRE(f != nullptr);
  REQUIRE(std::fscanf(f, "%lu %lu %lu", &total, &resident, &of_files) == 3);
  std::fclose(f);
  return std::uint64_t{of_files} * std::uint64_t(sysconf(_SC_PAGESIZE));
}
/// A sparse file of 30 GB, which occupies almost no space on the disk; some samples contain their own number.
constexpr shape sample{28, 28, 1};
constexpr std::uint64_t row_bytes = 4 * 784, rows_in_file = 30'000'000'000 / row_bytes;
std::filesystem::path large_file(const scratch_folder& f) {
  const auto path = f.write("large.bin", std::string());
  std::filesystem::resize_file(path, rows_in_file * row_bytes);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (std::uint64_t i = 0; i < rows_in_file; i += rows_in_file / 8) {
    const float value = float(i);
    file.seekp(std::streamoff(i * row_bytes));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return path;
}
bytes floats(int n) {
  bytes b;
  for (int i = 0; i < n; ++i) {
    const float value = float(i);
    const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
    b.insert(b.end(), first, first + sizeof value);
  }
  return b;
}
}  // namespace

TEST_CASE("samples from an offset on") {
  const scratch_folder f("mapped");
  const auto path = f.write("x.bin", bytes(8) + floats(12));
  const data::mapped_array<float, shape{2, 3}> x(path, {.offset = 8});
  CHECK(x.size() == 2);
  CHECK(x[1](1, 2) == 11);
  const data::mapped_array<float, shape{4}> some(path, {.offset = 12, .samples = 2});
  CHECK(some.size() == 2);
  CHECK(*some.row(1) == 5);
  CHECK(data::mapped_array<float, shape{}>(path, {.offset = 56}).empty());
  CHECK(data::mapped_array<std::uint8_t, shape{7}>(path).size() == 8);
  CHECK(data::mapped_array<float, shape{2}>(f.write("empty.bin", std::string())).empty());
}

TEST_CASE("what is wrong with a file") {
  const scratch_folder f("mapped");
  const auto path = f.write("x.bin", floats(12));
  const auto complaint = [&](data::mapped_array_options options) {
    return f.without_folder(error_of([&] { data::mapped_array<float, shape{2, 3}>(path, options); }));
  };
  CHECK(complaint({}) == "no error");
  CHECK(complaint({.offset = 49}) == "x.bin: the samples begin at byte 49, but the file has 48 bytes");
  CHECK(complaint({.offset = 2}) == "x.bin: the samples begin at byte 2, which is not a multiple of 4");
  CHECK(complaint({.offset = 4}) ==
        "x.bin: the 44 bytes from byte 4 on are not a whole number of samples of shape (2, 3), 24 bytes each");
  CHECK(complaint({.offset = 4, .samples = 2}) ==
        "x.bin: 2 samples of 24 bytes from byte 4 on are more than the file's 48 bytes");
  CHECK(complaint({.samples = std::size_t(-1) / 24 + 2}).find("are more than the file's 48 bytes") != std::string::npos);
  CHECK(complaint({.offset = std::uint64_t(-4)}).find("but the file has 48 bytes") != std::string::npos);
  CHECK(f.without_folder(error_of([&] { data::mapped_array<float, shape{}>(f / "none"); })) ==
        "cannot read none: No such file or directory");
  CHECK(error_of([&] { data::mapped_array<float, shape{}>(f.path); }) == "cannot read " + f.path.string() + ": Is a directory");
  CHECK(error_of([&] { data::mapped_array<float, shape{}>("/dev/null"); }) == "cannot read /dev/null: not a regular file");
}

TEST_CASE("30 GB are read with a small resident set: in order, at random, by several threads") {
  const scratch_folder f("mapped");
  const auto path = large_file(f);
  constexpr std::uint64_t limit = 64 << 20, bound = limit + (32 << 20);
  const std::uint64_t before = resident_file_bytes();
  std::uint64_t most = 0;
  const auto look = [&] { most = std::max(most, resident_file_bytes() - std::min(before, resident_file_bytes())); };

  const data::mapped_array<float, sample> x(path, {.resident_bytes = limit});
  REQUIRE(x.size() == rows_in_file);
  float sum = 0;
  const auto read = [&](std::uint64_t i) {
    const float* row = x.row(i);
    for (int k = 0; k < sample.size(); k += 512) sum += row[k];
  };
  SUBCASE("in order") {
    for (std::uint64_t i = 0; i < 120'000; ++i) {
      read(i);
      if (i % 64 == 0) look();
    }
    CHECK(sum == 0);
  }
  SUBCASE("at random") {
    for (std::uint64_t i = 0; i < 60'000; ++i) {
      read(philox{1}(i)[0] % rows_in_file);
      if (i % 64 == 0) look();
    }
  }
  SUBCASE("by several threads") {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&x, t] {
        float own = 0;
        for (std::uint64_t i = 0; i < 30'000; ++i) own += *x.row((t * rows_in_file / 4 + i) % rows_in_file);
        CHECK(own >= 0);
      });
    for (auto& t : threads) t.join();
    look();
  }
  CHECK(most < bound);
  for (std::uint64_t i = 0; i < rows_in_file; i += rows_in_file / 8) CHECK(x[i](0, 0, 0) == float(i));  // read again, not lost
}

TEST_CASE("without giving pages back, the same pass would be large") {
  const scratch_folder f("mapped");
  const data::mapped_array<float, sample> x(large_file(f), {.resident_bytes = std::uint64_t{1} << 40});
  const std::uint64_t before = resident_file_bytes();
  float sum = 0;
  for (std::uint64_t i = 0; i < 120'000; ++i)
    for (int k = 0; k < sample.size(); k += 512) sum += x.row(i)[k];
  CHECK(sum == 0);
  CHECK(resident_file_bytes() - before > 200 << 20);
}

TEST_CASE("30 GB as a data set: shuffled in a window, with the default limit") {
  const scratch_folder f("mapped");
  const data::mapped_array<float, sample> x(large_file(f));
  auto batches = data::from_tensor_slices(x) | data::shuffle(10'000) | data::take(150'016) | data::batch<64>;
  const std::uint64_t before = resident_file_bytes();
  std::uint64_t most = 0, count = 0;
  for (const auto& b : batches) {
    count += std::uint64_t(b.count);
    if (count % 640 == 0) most = std::max(most, resident_file_bytes() - std::min(before, resident_file_bytes()));
  }
  CHECK(count == 150'016);
  CHECK(most < 320u << 20);
}

TEST_CASE(".npy files that are mapped") {
  const scratch_folder f("mapped");
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  data::save_npy(f / "x.npy", {values, {4, 2, 3}});
  const auto x = data::mapped_npy<float, shape{2, 3, 1}>(f / "x.npy");
  CHECK(x.size() == 4);
  CHECK(x[3](1, 2, 0) == 23);
  const auto complaint = [&](auto&& what) { return f.without_folder(error_of(what)); };
  CHECK(complaint([&] { (void)data::mapped_npy<double, shape{2, 3}>(f / "x.npy"); }) ==
        "x.npy: byte 20: dtype: expected float64, got float32");
  CHECK(complaint([&] { (void)data::mapped_npy<float, shape{6}>(f / "x.npy"); }) ==
        "x.npy: byte 60: shape: expected any number of samples of shape (6,), got (4, 2, 3)");
}
