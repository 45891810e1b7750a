// MNIST, the data set of handwritten digits, as two views.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/data/formats/idx.hpp>
#include <strata/data/sets/digits.hpp>
#include <strata/data/sets/train_and_test.hpp>
#include <string>
#include <utility>

namespace strata::data {

namespace detail {
/// directory/name if it exists, else directory/name.gz if it exists.
[[gnu::cold]] inline std::optional<std::filesystem::path> raw_or_zipped(const std::filesystem::path& directory,
                                                                        const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"})
    if (auto path = directory / (name + ending); std::filesystem::is_regular_file(path, ignored)) return path;
  return std::nullopt;
}

[[gnu::cold]] inline digits read_digits(const std::filesystem::path& directory, const std::string& part) {
  const auto find = [&](const std::string& name) {
    if (auto path = raw_or_zipped(directory, name)) return *path;
    throw_error({"mnist: there is neither ", (directory / name).string(), " nor ", name, ".gz"});
  };
  const auto image_file = find(strata::detail::text_of({part, "-images-idx3-ubyte"})),
             label_file = find(strata::detail::text_of({part, "-labels-idx1-ubyte"}));
  auto images = read_idx<std::uint8_t, digit_shape>(image_file);
  const auto labels = read_idx<std::uint8_t, shape{}>(label_file);
  if (images.size() != labels.size())
    throw_error({"mnist: ", image_file.string(), " has ", images.size(), " images, but ", label_file.string(), " has ",
                 labels.size(), " labels"});
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (*labels.row(i) > 9)
      throw_error({"mnist: ", label_file.string(), ": label of sample ", i, ": expected 0 ... 9, got ", *labels.row(i)});
  return from_tensor_slices(std::move(images), labels.values()) | scale(1.0 / 255);
}
}  // namespace detail

/// MNIST from its four IDX files (raw or .gz): images (28, 28, 1) in [0, 1], labels 0 ... 9; 60,000 to train, 10,000 to test.
/// Throws strata_error that names the file, and the offset or sample, if a file is missing or damaged, or if images and
/// labels do not match. Takes the result of find_mnist(), and throws if that is std::nullopt.
inline train_and_test mnist(const std::optional<std::filesystem::path>& directory) {
  if (!directory) throw_error("mnist: no directory; find_mnist({.log = &std::cerr}) says where it looked and what failed");
  return {detail::read_digits(*directory, "train"), detail::read_digits(*directory, "t10k")};
}

}  // namespace strata::data
