#include <doctest/doctest.h>

#include <cstdint>
#include <strata/data/sets/cifar.hpp>
#include <strata/data/views/batch.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::test;

namespace {
std::uint8_t pixel(int image, int row, int column, int channel) {
  return std::uint8_t(image * 97 + row * 5 + column * 3 + channel * 71);
}
/// A record as the web page of the data set describes it: labels, then 1024 bytes each of red, green and blue.
bytes record(int image, const bytes& labels) {
  bytes b = labels;
  for (int channel = 0; channel < 3; ++channel)
    for (int row = 0; row < 32; ++row)
      for (int column = 0; column < 32; ++column) b.push_back(pixel(image, row, column, channel));
  return b;
}
std::string batch_name(int i) { return "data_batch_" + std::to_string(i) + ".bin"; }
void write_cifar10(const scratch_folder& f, const std::string& inside = "") {
  for (std::uint8_t i = 1; i <= 5; ++i) f.write(inside + batch_name(i), record(2 * i, {i}) + record(2 * i + 1, {0}));
  f.write(inside + "test_batch.bin", record(0, {9}));
}
template <class View>
void check(View view, const std::vector<int>& images, const std::vector<int>& labels) {
  REQUIRE(view.size() == images.size());
  std::size_t at = 0;
  for (const auto& b : view | data::batch<1, double>) {
    CHECK(b.labels()[0] == labels[at]);
    bool same = true;
    for (int row = 0; row < 32; ++row)
      for (int column = 0; column < 32; ++column)
        for (int channel = 0; channel < 3; ++channel)
          same = same && b.x()[(row * 32 + column) * 3 + channel] == pixel(images[at], row, column, channel) * (1.0 / 255);
    CHECK(same);
    ++at;
  }
}
}  // namespace

TEST_CASE("CIFAR-10: five batches in order, channels last") {
  for (const std::string inside : {"", "cifar-10-batches-bin/"}) {
    const scratch_folder f("cifar");
    write_cifar10(f, inside);
    const auto [train, test] = data::cifar10(f.path);
    check(train, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 0, 2, 0, 3, 0, 4, 0, 5, 0});
    check(test, {0}, {9});
  }
  CHECK(std::string(data::cifar10_class_names[9]) == "truck");
}

TEST_CASE("CIFAR-100: fine or coarse labels") {
  const scratch_folder f("cifar");
  f.write("train.bin", record(1, {19, 99}) + record(2, {0, 7}));
  f.write("test.bin", record(3, {4, 5}));
  const auto fine = data::cifar100(f.path);
  check(fine.train, {1, 2}, {99, 7});
  check(fine.test, {3}, {5});
  const auto coarse = data::cifar100(f.path, data::cifar100_labels::coarse);
  check(coarse.train, {1, 2}, {19, 0});
  check(coarse.test, {3}, {4});
}

TEST_CASE("what is wrong with a folder or a file") {
  const scratch_folder f("cifar");
  const auto complaint10 = [&] { return f.without_folder(error_of([&] { (void)data::cifar10(f.path); })); };
  const auto complaint100 = [&] { return f.without_folder(error_of([&] { (void)data::cifar100(f.path); })); };
  CHECK(complaint10() == "cifar10: there is no data_batch_1.bin, nor in cifar-10-batches-bin there");
  f.write("cifar-100-python/meta", std::string("pickled"));
  CHECK(complaint100().find(" has 'cifar-100-python', the version for Python") != std::string::npos);
  f.write("data_batch_1", std::string("pickled"));
  CHECK(complaint10() == "cifar10: " + f.path.string() + " has 'data_batch_1', the version for Python: strata reads the binary " +
                             "version, 'cifar-10-batches-bin'");
  f.write("train", std::string("pickled"));
  CHECK(complaint100() == "cifar100: " + f.path.string() +
                              " has 'train', the version for Python: strata reads the binary version, 'cifar-100-binary'");

  write_cifar10(f);
  std::filesystem::remove(f / "data_batch_1");
  std::filesystem::remove(f / "data_batch_4.bin");
  CHECK(complaint10() == "cifar10: there is no data_batch_4.bin, nor in cifar-10-batches-bin there");
  const bytes whole = record(1, {1}) + record(2, {2});
  const auto size_error = [](const std::string& name, std::size_t size, int each) {
    return name + ": " + std::to_string(size) + " bytes are not a whole number of records of " + std::to_string(each) +
           " bytes: truncated, or not the binary version";
  };
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3072}, std::size_t{6145}}) {
    f.write("data_batch_4.bin", std::span(whole).first(n));
    CHECK(complaint10() == size_error("data_batch_4.bin", n, 3073));
  }
  f.write("data_batch_4.bin", record(1, {1}) + record(2, {10}));
  CHECK(complaint10() == "data_batch_4.bin: byte 3073: label of sample 1: expected 0 ... 9, got 10");

  f.write("test.bin", record(1, {1, 1}));
  f.write("train.bin", whole);  // records of CIFAR-10
  CHECK(complaint100() == size_error("train.bin", 6146, 3074));
  f.write("train.bin", record(1, {20, 1}));
  CHECK(complaint100() == "train.bin: byte 0: label of sample 0: expected 0 ... 19, got 20");
  f.write("train.bin", record(1, {1, 1}) + record(1, {1, 100}));
  CHECK(complaint100() == "train.bin: byte 3075: label of sample 1: expected 0 ... 99, got 100");
}
