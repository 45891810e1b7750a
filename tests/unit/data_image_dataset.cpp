// needs: libpng libjpeg
#include <doctest/doctest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <strata/data/image/image_dataset_from_directory.hpp>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>

#include "data_image_encode.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::test;

namespace {

/// An image of one grey value.
bytes grey(int value, int width = 4, int height = 4) {
  return png_file(width, height, PNG_COLOR_TYPE_GRAY, bytes(std::size_t(width * height), std::uint8_t(value)));
}

std::vector<std::string> names(const image_folder& f, const auto& dataset) {
  std::vector<std::string> all;
  for (const auto& path : dataset.file_paths()) all.push_back(path.substr(f.path.string().size() + 1));
  return all;
}
std::vector<int> labels(const auto& dataset) {
  std::vector<int> all;
  for (std::uint32_t i = 0; i < dataset.size(); ++i) all.push_back(dataset.rows().label({i}));
  return all;
}

constexpr shape grey_image{4, 4, 1};
auto open(const image_folder& f, data::image_folder_options options = {}) {
  return data::image_dataset_from_directory<grey_image>(f.path, std::move(options));
}

}  // namespace

TEST_CASE("sub-folders are classes, in the order of their names; files are sorted") {
  const image_folder f;
  for (const char* name : {"dog/b.png", "dog/a.PNG", "dog/sub/0.png", "Cat/2.png", "Cat/10.jpeg", "Cat/3.Jpg", "dog/sub-2/9.png",
                           ".hidden/x.png", "dog/notes.txt", "dog/x.gif", "loose.png", "dog/png", "dog/._b.png", ".DS_Store"})
    f.put(name, grey(1));
  std::filesystem::create_directories(f.path / "empty");
  std::filesystem::create_directories(f.path / "dog" / "folder.png");
  std::ostringstream said;  // once, and nothing about harmless files
  std::streambuf* const log = std::clog.rdbuf(said.rdbuf());
  open(f);
  const auto dataset = open(f);
  std::clog.rdbuf(log);
  CHECK(said.str() == f.path.string() +
                          ": 7 images are read; skipped: 1 folder(s) without images (empty); "
                          "1 image(s) next to the folders of the classes (loose.png); "
                          "1 image(s) other than .png, .jpg and .jpeg (dog/x.gif)\n");
  CHECK(dataset.class_names() == std::vector<std::string>{"Cat", "dog", "empty"});
  CHECK(names(f, dataset) == std::vector<std::string>{"Cat/10.jpeg", "Cat/2.png", "Cat/3.Jpg", "dog/a.PNG", "dog/b.png",
                                                      "dog/sub/0.png", "dog/sub-2/9.png"});
  CHECK(labels(dataset) == std::vector{0, 0, 0, 1, 1, 1, 1});
  CHECK(dataset.size() == 7);
  const std::string always = "1 file(s) of macOS next to images (dog/._b.png); 2 file(s) other than images (dog/notes.txt); ";
  CHECK(dataset.left_out() == always +
                                  "1 folder(s) without images (empty); 1 hidden folder(s) (.hidden); "
                                  "1 image(s) next to the folders of the classes (loose.png); "
                                  "1 image(s) other than .png, .jpg and .jpeg (dog/x.gif)");

  const auto chosen = open(f, {.class_names = {"dog", "Cat"}});
  CHECK(chosen.class_names() == std::vector<std::string>{"dog", "Cat"});
  CHECK(labels(chosen) == std::vector{0, 0, 0, 0, 1, 1, 1});
  CHECK(names(f, open(f, {.class_names = {"Cat"}})).size() == 3);
  CHECK(open(f, {.class_names = {"Cat"}}).left_out() ==
        "2 folder(s) not in class_names (dog); 1 hidden folder(s) (.hidden); "
        "1 image(s) next to the folders of the classes (loose.png)");

  // User-defined labels, or none: all files, whatever the folder.
  const std::vector<std::int64_t> own{9, 8, 7, 6, 5, 4, 3, 2, 1};
  const auto labelled = data::image_dataset_from_directory<grey_image>(f.path, own);
  CHECK(labels(labelled) == std::vector{9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(names(f, labelled).front() == "loose.png");
  CHECK(labelled.class_names().empty());
  const auto plain = data::image_dataset_from_directory<grey_image>(f.path, data::no_labels{});
  CHECK(names(f, plain) == names(f, labelled));
  static_assert(data::rows_t<decltype(plain)>::labels == label_kind::none);

  // Links to folders are followed below the classes only on request.
  std::filesystem::create_directory_symlink(f.path / "Cat", f.path / "dog" / "linked");
  CHECK(open(f).size() == 7);
  CHECK(contains(open(f).left_out(), "; 1 link(s) to folders (dog/linked)"));
  CHECK(!contains(open(f, {.follow_links = true}).left_out(), "link"));
  CHECK(open(f, {.follow_links = true}).size() == 10);
}

TEST_CASE("training and validation are parts of all, the same for the same seed") {
  const image_folder f;
  for (int i = 0; i < 40; ++i) f.put((i < 25 ? "a/" : "b/") + std::to_string(100 + i) + ".png", grey(i));
  std::set<std::vector<std::string>> splits;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto training = open(f, {.validation_split = 0.3, .subset = data::subset::training, .seed = seed});
    const auto validation = open(f, {.validation_split = 0.3, .subset = data::subset::validation, .seed = seed});
    CHECK(validation.size() == 12);
    CHECK(training.size() == 28);
    auto both = names(f, training);
    const auto held_out = names(f, validation);
    CHECK(std::ranges::is_sorted(both));
    CHECK(std::ranges::is_sorted(held_out));
    splits.insert(held_out);
    both.insert(both.end(), held_out.begin(), held_out.end());
    std::ranges::sort(both);
    CHECK(both == names(f, open(f)));
    for (const auto& set : {training, validation}) {
      const std::vector<int> y = labels(set);
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (names(f, set)[i].starts_with("b/") ? 1 : 0));
      CHECK(std::ranges::count(y, 1) > 0);
    }
    CHECK(names(f, open(f, {.validation_split = 0.3, .subset = data::subset::validation, .seed = seed})) == held_out);
    CHECK(training.class_names().size() == 2);
  }
  CHECK(splits.size() == 4);
}

TEST_CASE("what comes out: decoded, resized, shuffled without being read") {
  const image_folder f;
  for (int i = 0; i < 12; ++i)
    f.put(i % 2 == 0 ? "even/" + std::to_string(10 + i) + ".png" : "odd/" + std::to_string(10 + i) + ".png",
          grey(i * 20, 3 + i, 9 - i / 2));
  std::map<float, int> seen;
  for (const auto& b : open(f) | data::shuffle(12, {.seed = 5}) | data::random_flip() | data::scale(0.05) | data::batch<5>)
    for (int i = 0; i < b.count; ++i) {
      const float* x = b.x() + i * 16;
      CHECK(std::all_of(x, x + 16, [&](float v) { return v == doctest::Approx(x[0]); }));
      seen[std::round(x[0])] = b.labels()[i];
    }
  CHECK(seen.size() == 12);
  for (const auto& [value, label] : seen) CHECK(label == int(value) % 2);

  // The options for colours, proportions and methods are applied to the file.
  const image_folder one;
  bytes rows;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x)
      for (const int v : {x * 10, y * 100, 7}) rows.push_back(std::uint8_t(v));
  one.put("a/wide.png", png_file(4, 2, PNG_COLOR_TYPE_RGB, rows));
  const auto red = [&](data::image_folder_options options) {
    std::vector<float> values;
    for (const auto& b : data::image_dataset_from_directory<shape{2, 2, 3}>(one.path, options) | data::batch<1>)
      for (int i = 0; i < 4; ++i) {
        values.push_back(b.x()[3 * i]);
        CHECK((b.x()[3 * i + 2] == 7 || options.pad_to_aspect_ratio));
      }
    return values;
  };
  CHECK(red({}) == std::vector<float>{5, 25, 5, 25});
  CHECK(red({.interpolation = data::resize_method::nearest}) == std::vector<float>{10, 30, 10, 30});
  CHECK(red({.crop_to_aspect_ratio = true}) == std::vector<float>{10, 20, 10, 20});
  CHECK(red({.pad_to_aspect_ratio = true}) == std::vector<float>{5, 25, 0, 0});
  for (const auto& b : data::image_dataset_from_directory<shape{2, 4, 4}>(one.path) | data::batch<1>) {
    CHECK(b.x()[4] == 10);
    CHECK(b.x()[17] == 100);
    CHECK(b.x()[3] == 255);
  }

  // Bytes are rounded when they are kept, and when they are not.
  using as_bytes = decltype(data::image_dataset_from_directory<shape{1, 3, 3}, std::uint8_t>(one.path));
  static_assert(std::same_as<data::rows_t<as_bytes>::value_type, std::uint8_t>);
  static_assert(std::ranges::random_access_range<as_bytes> && data::sample_view<as_bytes>);
  float fraction = 0;
  for (const auto& b : data::image_dataset_from_directory<shape{1, 3, 3}>(one.path) | data::batch<1>) fraction = b.x()[0];
  CHECK(fraction == doctest::Approx(10. / 6));
  for (const auto& b : data::image_dataset_from_directory<shape{1, 3, 3}, std::uint8_t>(one.path) | data::batch<1>)
    CHECK(b.x()[0] == 2);
  for (const auto& b : open(f, {.class_names = {"odd", "even"}}) | data::one_hot<2> | data::batch<12>) {
    CHECK(b.targets()[0] == 1);
    CHECK(b.targets()[23] == 1);
  }
}

TEST_CASE("what is wrong with a folder") {
  const image_folder f;
  const std::string at = f.path.string() + ": ";
  CHECK(error_of([&] { open(f); }) == at + "there are no sub-folders, which would be the classes");
  f.put("cat/words.txt", {1, 2});
  CHECK(error_of([&] { open(f); }) == at + "there are no .png, .jpg or .jpeg files");
  for (int i = 0; i < 4; ++i) f.put("cat/" + std::to_string(i) + ".png", grey(1));
  CHECK(error_of([&] { data::image_dataset_from_directory<grey_image>(f.path / "none"); }) ==
        (f.path / "none").string() + ": there is no such folder");
  CHECK(error_of([&] { data::image_dataset_from_directory<grey_image>(f.path / "cat" / "0.png"); }) ==
        (f.path / "cat" / "0.png").string() + ": not a folder");
  CHECK(error_of([&] { open(f, {.class_names = {"cat", "dog"}}); }) == at + "there is no sub-folder for the class dog");
  CHECK(error_of([&] { open(f, {.class_names = {"cat", "cat"}}); }) == at + "class_names has 'cat' twice");
  CHECK(open(f).left_out() == "1 file(s) other than images (cat/words.txt)");
  std::filesystem::remove(f.path / "cat" / "words.txt");
  CHECK(open(f).left_out().empty());
  CHECK(error_of([&] { open(f, {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}); }) ==
        at + "only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be set");
  CHECK(error_of([&] { open(f, {.validation_split = 0.5}); }) == at + "validation_split needs a subset, training or validation");
  CHECK(error_of([&] { open(f, {.subset = data::subset::training}); }) == at + "validation_split 0 is not between 0 and 1");
  CHECK(error_of([&] { open(f, {.validation_split = 0.2, .subset = data::subset::validation}); }) ==
        at + "validation_split 0.2 of 4 files leaves none for validation");
  CHECK(error_of([&] { data::image_dataset_from_directory<grey_image>(f.path, std::vector{1, 2}); }) ==
        at + "2 labels for 4 files");
  CHECK(error_of([&] { data::image_dataset_from_directory<grey_image>(f.path, data::no_labels{}, {.class_names = {"cat"}}); }) ==
        at + "class_names are for labels that are inferred from folders");

  // A damaged file is an error when it is read, with its name.
  bytes cut = grey(1);
  cut.resize(cut.size() - 3);
  const auto damaged = f.put("cat/9.png", cut);
  const auto dataset = open(f);
  CHECK(dataset.rows().describe({4}) == "sample 4, " + damaged.string());
  CHECK(error_of([&] {
          for (const auto& b : dataset | data::batch<5>) (void)b;
        }).find(damaged.string() + ": the file ends too early") != std::string::npos);
}

TEST_CASE("a description tells folders apart by names, labels and sizes, and by how images are resized") {
  const image_folder f;
  for (const char* name : {"a/0.png", "a/1.png", "b/2.png"}) f.put(name, grey(1));
  const auto order = [&](data::image_folder_options options = {}) { return data::detail::order_of(open(f, std::move(options))); };
  const std::string before = order();
  CHECK(order() == before);
  CHECK(before.starts_with("image_dataset_from_directory(3 files, checksum "));
  CHECK(order({.interpolation = data::resize_method::nearest}) != before);
  CHECK(order({.crop_to_aspect_ratio = true}) != before);
  CHECK(order({.pad_to_aspect_ratio = true}) != order({.crop_to_aspect_ratio = true}));
  CHECK(order({.class_names = {"b", "a"}}) != before);
  f.put("b/2.png", grey(1, 50, 50));
  const std::string larger = order();
  CHECK(larger != before);
  std::filesystem::rename(f.path / "a" / "1.png", f.path / "a" / "4.png");
  CHECK(order() != larger);
}
