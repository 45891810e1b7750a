// Trains from the TFRecord files on the command line, or from files that it writes first.
// needs: protozero
// takes: 1 s on two cores
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <span>
#include <strata/data/formats/example.hpp>
#include <strata/data/formats/example_builder.hpp>
#include <strata/data/formats/tf_record.hpp>
#include <strata/data/formats/tf_record_writer.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/strata.hpp>
#include <string>
#include <utility>
#include <vector>

using namespace strata;
namespace fs = std::filesystem;

namespace {

using mlp = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dense<10, softmax>>;

/// Writes rendered digits to four files.
std::vector<fs::path> write_files(const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<fs::path> files;
  data::example_builder example;
  for (std::uint64_t i = 0; i < 4; ++i) {
    files.push_back(folder / ("digits-" + std::to_string(i) + ".tfrecord"));
    data::tf_record_writer writer(files.back());
    auto digits = data::synthetic_digits(5'000, i) | data::batch<1>;
    for (const auto& digit : digits) {
      example.clear();
      example.floats("image", std::span(digit.x(), 28 * 28)).integer("label", digit.labels()[0]);
      writer.write(example.serialized());
    }
    writer.close();
    std::cout << "wrote " << files.back().string() << '\n';
  }
  return files;
}

/// Parses a record with the features `image`, of shape (28, 28, 1), and `label`, the class index.
auto digit_of(std::span<const std::byte> record) {
  const data::example example(record);
  return data::sample{example.floats<shape{28, 28, 1}>("image"), example.integer("label")};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> files;
  fs::path folder = fs::temp_directory_path() / ("strata-tfrecord-" + std::to_string(::getuid()));
  int epochs_to_train = 3;
  CLI::App app("Trains from TFRecord files of tf.train.Example with the features image (784 floats) and label (an int64).");
  app.add_option("files", files, "TFRecord files; without any, rendered digits are written to --to");
  app.add_option("--to", folder, "folder for the rendered digits")->capture_default_str();
  app.add_option("--epochs", epochs_to_train, "number of epochs")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;  // CLI11 reports --help as an exception
  }

  try {
    if (files.empty()) files = write_files(folder);
    auto records = [](const fs::path& file) { return data::tf_record_reader(file); };
    auto train = data::from_range(files) | data::interleave(records, {.cycle_length = 4}) | data::shuffle(10'000) |
                 data::map(digit_of) | data::batch<64>;
    trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
    model.fit(train, epochs(epochs_to_train));
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
