// Trains on a file larger than the memory: 30 GB of samples, less than 500 MB of them in the process at any time.
// takes: 5 s on two cores
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <strata/data/sources/mapped_array.hpp>
#include <strata/strata.hpp>
#include <vector>

using namespace strata;
namespace fs = std::filesystem;

namespace {

constexpr shape image{28, 28, 1};
constexpr std::uintmax_t image_bytes = sizeof(float) * image.size();

using mlp = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dense<10, softmax>>;

/// A sparse file of zeros, which uses no disk space on most file systems. It is removed when the program ends.
struct sparse_file {
  fs::path path;

  sparse_file(fs::path p, std::uintmax_t images) : path(std::move(p)) {
    if (fs::exists(path)) throw strata_error(path.string() + " exists and would be overwritten");
    std::ofstream{path};
    fs::resize_file(path, images * image_bytes);
  }
  ~sparse_file() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

/// The peak memory of this process, in MB.
long peak_resident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  double gigabytes = 30;
  long steps = 5'000;
  fs::path path = fs::temp_directory_path() / ("larger_than_memory." + std::to_string(::getpid()) + ".bin");
  CLI::App app("Trains on a file that is larger than the memory.");
  app.add_option("--gigabytes", gigabytes, "size of the file")->capture_default_str()->check(CLI::Range(0.01, 10'000.0));
  app.add_option("--steps", steps, "batches of 64 to train on; 0: the whole file")->capture_default_str();
  app.add_option("--file", path, "path of the sparse file, which is removed at the end")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;  // CLI11 reports --help as an exception
  }

  try {
    const auto images = static_cast<std::uintmax_t>(gigabytes * 1e9) / image_bytes;
    const sparse_file file(path, images);
    std::cout << images << " images in " << path.string() << '\n';

    auto train = data::from_tensor_slices(data::mapped_array<float, image>(path), std::vector<std::uint8_t>(images)) |
                 data::shuffle(10'000) | data::batch<64>;
    trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
    if (steps > 0)
      model.fit(train, epochs(1), steps_per_epoch(steps));
    else
      model.fit(train, epochs(1));
    std::cout << "peak resident set: " << peak_resident() << " MB\n";
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
