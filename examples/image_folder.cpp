// Trains from a folder of PNG and JPEG files, one sub-folder per class, with random augmentation.
// needs: libpng libjpeg
// takes: 10 to 25 s on two cores, most of it for writing 4,000 files
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <strata/data/image/image_dataset_from_directory.hpp>
#include <strata/data/image/random_contrast.hpp>
#include <strata/data/image/random_rotation.hpp>
#include <strata/data/image/random_translation.hpp>
#include <strata/strata.hpp>
#include <string>

using namespace strata;
namespace fs = std::filesystem;

namespace {

constexpr int classes = 10;
constexpr shape image{28, 28, 1};
using cnn = sequential<input<28, 28, 1>, conv2d<16, 3, relu>, max_pool2d<2>, conv2d<32, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<classes, softmax>>;

/// Writes rendered digits, one sub-folder per digit.
void write_images(const fs::path& folder, std::size_t n) {
  auto digits = data::synthetic_digits(n, 1) | data::scale(255) | data::batch<1>;
  std::map<int, int> written;
  for (const auto& digit : digits) {
    const fs::path sub_folder = folder / std::to_string(digit.labels()[0]);
    fs::create_directories(sub_folder);
    data::write_png(sub_folder / (std::to_string(written[digit.labels()[0]]++) + ".png"), tensor<const float, image>{digit.x()});
  }
  std::cout << "wrote " << n << " images into " << folder.string() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  fs::path folder, to = fs::temp_directory_path() / ("strata-digits-" + std::to_string(::getuid()));
  int epochs_to_train = 3;
  CLI::App app("Trains a convolutional network to distinguish " + std::to_string(classes) + " classes of images.");
  app.add_option("folder", folder, "folder with a sub-folder for each class; without one, rendered digits are written to --to");
  app.add_option("--to", to, "folder for the rendered digits")->capture_default_str();
  app.add_option("--epochs", epochs_to_train, "number of epochs")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;  // CLI11 reports --help as an exception
  }

  try {
    if (folder.empty()) write_images(folder = to, 4'000);
    const auto part = [&](data::subset which) {
      return data::image_dataset_from_directory<image>(folder, {.validation_split = 0.2, .subset = which, .seed = 1});
    };
    const auto training = part(data::subset::training);
    if (training.class_names().size() != classes)
      throw strata_error(folder.string() + ": this network has " + std::to_string(classes) + " classes, but there are " +
                         std::to_string(training.class_names().size()) + " sub-folders");
    auto train = training | data::shuffle(training.size()) | data::random_translation(0.1, 0.1) | data::random_rotation(0.03) |
                 data::random_contrast(0.3) | data::scale(1 / 255.0) | data::batch<64>;
    auto validate = part(data::subset::validation) | data::scale(1 / 255.0) | data::batch<64>;
    trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
    model.fit(train, epochs(epochs_to_train), validation(validate));
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
