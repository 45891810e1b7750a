// HDF5 files: what is written is read back, and errors name the path.
// needs: hdf5
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <strata/interop/hdf5.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

const std::vector<float> numbers{1, 2, 3, 4.5f, -6, 0};
const std::uint64_t extents[] = {2, 3};

/// A file like the legacy files of Keras, with texts of variable length, which are the hardest to read.
std::vector<std::byte> some_file() {
  hdf5_image file("some file");
  file.array<float>("model_weights/dense/kernel", extents, numbers);
  file.number<std::int64_t>("optimizer_weights/iterations", 1'000'000'000'007);
  file.number<double>("optimizer_weights/rate", 0.1);
  file.number<std::int32_t>("optimizer_weights/small", -7);
  file.text("", "model_config", std::string(100, 'c'));
  file.texts("model_weights", "layer_names", {"dense", "", "flatten"});
  file.group("model_weights/flatten");
  return file.bytes();
}

/// An array of 1,000 zeros, in one chunk that decompresses to `unpacked` zeros.
std::vector<std::byte> packed_file(std::size_t unpacked) {
  const detail::hdf5_call call;
  const detail::hdf5_handle access = detail::hdf5_memory_access();
  const detail::hdf5_handle file(H5Fcreate(detail::hdf5_memory_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()),
                                 H5Fclose);
  const hsize_t extent = 1000, offset = 0;
  const detail::hdf5_handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose),
      creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(creation.id(), 1, &extent);
  H5Pset_deflate(creation.id(), 9);
  const detail::hdf5_handle set(
      H5Dcreate2(file.id(), "kernel", H5T_NATIVE_FLOAT, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Dclose);
  const std::vector<Bytef> zeros(unpacked * sizeof(float));
  uLongf size = compressBound(uLong(zeros.size()));
  std::vector<Bytef> packed(size);
  REQUIRE(compress2(packed.data(), &size, zeros.data(), uLong(zeros.size()), 9) == Z_OK);
  REQUIRE(H5Dwrite_chunk(set.id(), H5P_DEFAULT, 0, &offset, size, packed.data()) >= 0);
  REQUIRE(H5Fflush(file.id(), H5F_SCOPE_LOCAL) >= 0);
  std::vector<std::byte> bytes(std::size_t(H5Fget_file_image(file.id(), nullptr, 0)));
  H5Fget_file_image(file.id(), bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("hdf5: what is written is read") {
  const hdf5_file file("some file", some_file());
  CHECK(file.name() == "some file");
  CHECK(file.names_in("") == std::vector<std::string>{"model_weights", "optimizer_weights"});
  CHECK(file.names_in("model_weights") == std::vector<std::string>{"dense", "flatten"});
  CHECK(file.names_in("nothing").empty());
  CHECK(file.has("model_weights/flatten"));
  CHECK_FALSE(file.has("model_weights/flat"));

  const auto array = file.find_array("model_weights/dense/kernel");
  REQUIRE(array.has_value());
  CHECK(array->extents == std::vector<std::uint64_t>{2, 3});
  CHECK((array->is_float && !array->is_whole && array->size == 4));
  CHECK_FALSE(file.find_array("model_weights/dense/bias").has_value());
  std::vector<float> read(6);
  file.read("model_weights/dense/kernel", std::span(read));
  CHECK(read == numbers);
  std::vector<double> wide(6);
  file.read("model_weights/dense/kernel", std::span(wide));
  CHECK(std::ranges::equal(wide, numbers));
  std::int64_t large = 0;
  file.read("optimizer_weights/iterations", std::span(&large, 1));
  CHECK(large == 1'000'000'000'007);
  double rate = 0;
  file.read("optimizer_weights/rate", std::span(&rate, 1));
  CHECK(rate == 0.1);
  std::int32_t small = 0;
  file.read("optimizer_weights/small", std::span(&small, 1));
  CHECK(small == -7);

  CHECK(file.has_attribute("", "model_config"));
  CHECK_FALSE(file.has_attribute("", "layer_names"));
  CHECK(file.texts("", "model_config") == std::vector<std::string>{std::string(100, 'c')});
  CHECK(file.texts("model_weights", "layer_names") == std::vector<std::string>{"dense", "", "flatten"});
  CHECK_FALSE(file.texts("", "keras_version").has_value());
}

TEST_CASE("hdf5: errors name the file and the path, and the file can be read on") {
  const hdf5_file file("some file", some_file());
  std::vector<float> read(5);
  const auto reads = [&](const char* path) { return error_of([&] { file.read(path, std::span(read)); }); };
  CHECK(reads("model_weights/dense/kernel") == "some file: model_weights/dense/kernel: has 6 elements, not 5");
  CHECK(reads("model_weights/dense/bias") == "some file: model_weights/dense/bias: missing");
  CHECK(error_of([&] { (void)file.find_array("model_weights"); }) == "some file: model_weights: not an array");
  CHECK(file.has("model_weights"));
  CHECK(error_of([] { hdf5_file("text", std::vector<std::byte>(100)); }) == "text: not an HDF5 file");
  CHECK(error_of([] { hdf5_file(std::filesystem::path("/no/such.h5")); }).starts_with("cannot read /no/such.h5"));
  CHECK(error_of([] { hdf5_file(std::filesystem::path("/dev/null")); }) == "cannot read /dev/null: not a regular file");
  std::vector<std::byte> half = some_file();
  half.resize(half.size() / 3);
  CHECK(error_of([&] { hdf5_file("half", half); }) == "half: damaged, or an HDF5 file of a newer version");
}

TEST_CASE("hdf5: texts that a file names many times are added up before one of them is read") {
  constexpr std::size_t length = 4999, times = 300, descriptor = 16;
  hdf5_image image("some file");
  std::vector<std::string> texts(times, "short");
  texts[0] = std::string(length, 'x');
  image.texts("model_weights", "layer_names", texts);
  image.texts("", "layer_names", texts);
  std::vector<std::byte> bytes = image.bytes();
  CHECK(hdf5_file("some file", bytes).texts("", "layer_names") == texts);

  // The first descriptor, a length and the address of the text, represents all others.
  const std::byte first[] = {std::byte(length & 255), std::byte(length >> 8), std::byte{0}, std::byte{0}};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(first), std::end(first));
  REQUIRE(at != bytes.end());
  for (std::size_t k = 1; k < times; ++k) std::copy_n(at, descriptor, at + std::ptrdiff_t(k * descriptor));
  const hdf5_file file("some file", bytes);
  const std::string why =
      " has " + std::to_string(length * times) + " bytes of text in a file of " + std::to_string(bytes.size());
  const auto reads = [&](const char* path) { return error_of([&] { (void)file.texts(path, "layer_names"); }); };
  CHECK(reads("model_weights") == "some file: model_weights: its attribute layer_names" + why);
  CHECK(file.texts("", "layer_names") == texts);
}

TEST_CASE("hdf5: a few bytes that unpack to many are refused before they take memory") {
  std::vector<float> read(1000, 1);
  hdf5_file("some file", packed_file(1000)).read("kernel", std::span(read));
  CHECK(read == std::vector<float>(1000));
  const std::vector<std::byte> bytes = packed_file(40'000'000);
  CHECK(bytes.size() < 400'000);
  CHECK(error_of([&] { hdf5_file("some file", bytes).read("kernel", std::span(read)); }) ==
        "some file: kernel: its chunks are larger packed than unpacked");
}

TEST_CASE("hdf5: several threads read one file") {
  const hdf5_file file("some file", some_file());
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        std::vector<float> read(6);
        file.read("model_weights/dense/kernel", std::span(read));
        equal[t] += read == numbers;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(equal == std::vector<int>(4, 20));
}
