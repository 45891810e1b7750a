// The data set of handwritten digits, as two views that are ready for use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/data/digits.hpp>
#include <strata/data/idx.hpp>
#include <string>
#include <utility>

namespace strata::data {

struct train_and_test {
  digits train, test;
};

namespace detail {
/// directory/name, else directory/name.gz, else nothing.
inline std::optional<std::filesystem::path> raw_or_zipped(const std::filesystem::path& directory, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"})
    if (auto path = directory / (name + ending); std::filesystem::is_regular_file(path, ignored)) return path;
  return std::nullopt;
}

inline digits read_digits(const std::filesystem::path& directory, const std::string& part) {
  const auto find = [&](const std::string& name) {
    if (auto path = raw_or_zipped(directory, name)) return *path;
    throw error("mnist: there is neither " + (directory / name).string() + " nor " + name + ".gz");
  };
  const auto image_file = find(part + "-images-idx3-ubyte"), label_file = find(part + "-labels-idx1-ubyte");
  auto images = read_idx<std::uint8_t, digit_shape>(image_file);
  const auto labels = read_idx<std::uint8_t, shape{}>(label_file);
  if (images.size() != labels.size())
    throw error("mnist: " + image_file.string() + " has " + std::to_string(images.size()) + " images, but " +
                label_file.string() + " has " + std::to_string(labels.size()) + " labels");
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (*labels.row(i) > 9)
      throw error("mnist: " + label_file.string() + ": label of sample " + std::to_string(i) + ": expected 0 ... 9, got " +
                  std::to_string(*labels.row(i)));
  return from_tensor_slices(std::move(images), labels.values()) | scale(1.0 / 255);
}
}  // namespace detail

/// MNIST from its four IDX files (raw or .gz): images (28, 28, 1) in [0, 1], labels 0 ... 9; 60,000 to train, 10,000 to test.
/// Throws strata::error that names the file, and the offset or sample, if one is missing, damaged or does not fit another.
/// Takes what find_mnist() returns: nothing found is an error here.
inline train_and_test mnist(const std::optional<std::filesystem::path>& directory) {
  if (!directory) throw error("mnist: no directory; find_mnist({.log = &std::cerr}) says where it looked and what failed");
  return {detail::read_digits(*directory, "train"), detail::read_digits(*directory, "t10k")};
}

}  // namespace strata::data
