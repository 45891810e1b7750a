// CIFAR-10 and CIFAR-100 from their binary versions.  https://www.cs.toronto.edu/~kriz/cifar.html
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <strata/base/aligned_memory.hpp>
#include <strata/base/error.hpp>
#include <strata/base/shape.hpp>
#include <strata/base/text.hpp>
#include <strata/data/core/array.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/io/mapped_file.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::data {

inline constexpr shape cifar_shape{32, 32, 3};

/// Images of bytes, scaled to [0, 1]; sparse labels.
using cifar_images =
    decltype(from_tensor_slices(std::declval<array<std::uint8_t, cifar_shape>>(), std::declval<std::vector<int>>()) |
             scale(1.0 / 255));

struct cifar_train_and_test {
  cifar_images train, test;
};

/// The names of labels 0 ... 9 of CIFAR-10.
inline constexpr std::array<const char*, 10> cifar10_class_names{"airplane", "automobile", "bird",  "cat",  "deer",
                                                                 "dog",      "frog",       "horse", "ship", "truck"};

/// The two kinds of labels of CIFAR-100, label_mode in Keras.
enum class cifar100_labels { fine, coarse };  // 100 classes, or the 20 groups of five that they form

namespace detail {
/// A label byte of a record: its place, and the number of classes.
struct cifar_label {
  std::size_t at;
  int classes;
};

/// Records of `label_bytes` labels and 32 x 32 bytes each of red, green and blue, as images whose channels come last.
inline cifar_images read_cifar(const std::filesystem::path& folder, std::initializer_list<const char*> names,
                               std::size_t label_bytes, std::initializer_list<cifar_label> checked, std::size_t label_at) {
  constexpr std::size_t pixels = 32 * 32, channels = 3;
  const std::size_t record = label_bytes + pixels * channels;
  std::vector<io::mapped_file> files;
  std::size_t images = 0;
  for (const char* name : names) {
    const std::size_t size = files.emplace_back(folder / name).bytes().size();
    if (size == 0 || size % record != 0)
      throw_error({(folder / name).string(), ": ", size, " bytes are not a whole number of records of ", record,
                   " bytes: truncated, or not the binary version"});
    images += size / record;
  }

  const std::shared_ptr<std::uint8_t> values = strata::detail::allocate_shared_aligned<std::uint8_t>(images * pixels * channels);
  std::vector<int> labels;
  labels.reserve(images);
  std::uint8_t* out = values.get();
  for (const io::mapped_file& file : files)
    for (std::size_t at = 0; at < file.bytes().size(); at += record, out += pixels * channels) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(file.bytes().data()) + at;
      for (const cifar_label& label : checked)
        if (from[label.at] >= label.classes)
          throw_error({file.path().string(), ": byte ", at + label.at, ": label of sample ", at / record, ": expected 0 ... ",
                       label.classes - 1, ", got ", from[label.at]});
      labels.push_back(from[label_at]);
      for (std::size_t p = 0; p < pixels; ++p)
        for (std::size_t c = 0; c < channels; ++c) out[p * channels + c] = from[label_bytes + c * pixels + p];
    }
  return from_tensor_slices(array<std::uint8_t, cifar_shape>(values, images), std::move(labels)) | scale(1.0 / 255);
}

/// The folder itself, or the folder inside it into which the archive unpacks.
inline std::filesystem::path find_cifar(std::string_view function, const std::filesystem::path& folder, const char* unpacked,
                                        std::initializer_list<const char*> names, std::initializer_list<const char*> pickled) {
  std::error_code ignored;
  const auto first_missing = [&](const std::filesystem::path& f) -> const char* {
    for (const char* name : names)
      if (!std::filesystem::exists(f / name, ignored)) return name;
    return nullptr;
  };
  for (const auto& f : {folder, folder / unpacked})
    if (first_missing(f) == nullptr) return f;
  const std::string start(strata::detail::text_of({function, ": "}));
  for (const char* name : pickled)
    if (std::filesystem::exists(folder / name, ignored))
      throw_error({start, folder.string(), " has '", name, "', the version for Python: strata reads the binary version, '",
                   unpacked, "'"});
  throw_error({start, "there is no ", (folder / first_missing(folder)).string(), ", nor in ", unpacked, " there"});
}
}  // namespace detail

/// CIFAR-10 from data_batch_1.bin ... data_batch_5.bin and test_batch.bin, in `folder` or in cifar-10-batches-bin there: images
/// (32, 32, 3) in [0, 1], labels 0 ... 9; 50,000 to train, 10,000 to test.
/// Throws strata_error that names the file, and its size or the offset: missing, truncated, or with an impossible label.
inline cifar_train_and_test cifar10(const std::filesystem::path& folder) {
  const auto found = detail::find_cifar(
      "cifar10", folder, "cifar-10-batches-bin",
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"},
      {"data_batch_1", "cifar-10-batches-py"});
  const auto read = [&](std::initializer_list<const char*> names) { return detail::read_cifar(found, names, 1, {{0, 10}}, 0); };
  return {read({"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}),
          read({"test_batch.bin"})};
}

/// CIFAR-100 from train.bin and test.bin, in `folder` or in cifar-100-binary there; labels 0 ... 99, or with
/// cifar100_labels::coarse 0 ... 19. Throws strata_error as cifar10 does.
inline cifar_train_and_test cifar100(const std::filesystem::path& folder, cifar100_labels kind = cifar100_labels::fine) {
  const auto found =
      detail::find_cifar("cifar100", folder, "cifar-100-binary", {"train.bin", "test.bin"}, {"train", "cifar-100-python"});
  const auto read = [&](const char* name) {
    return detail::read_cifar(found, {name}, 2, {{0, 20}, {1, 100}}, kind == cifar100_labels::coarse ? 0 : 1);
  };
  return {read("train.bin"), read("test.bin")};
}

}  // namespace strata::data
