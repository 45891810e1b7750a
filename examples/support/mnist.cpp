#include "mnist.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <strata/data/sets/find_mnist.hpp>
#include <strata/data/sets/mnist.hpp>
#include <strata/data/sets/synthetic_digits.hpp>

namespace examples {

int run(int argc, char** argv, const std::string& description, void (*train)(const settings&)) {
  settings s;
  CLI::App app(description);
  app.add_option("--data", s.data, "folder with the four IDX files of MNIST, raw or .gz");
  app.add_option("--epochs", s.epochs, "number of epochs")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  app.add_option("--batch", s.batch, "global batch size")->capture_default_str()->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", s.seed, "seed of weights and shuffling")->capture_default_str();
  app.add_option("--threads", s.threads, "number of threads; 0: one per core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'024));
  app.add_option("--strategy", s.strategy, "strategy")->capture_default_str()->check(CLI::IsMember({"one_device"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;  // CLI11 reports --help as an exception
  }
  try {
    train(s);
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}

strata::data::train_and_test load(const settings& s) {
  using namespace strata;
  if (!s.data.empty()) return data::mnist(s.data);
  if (const auto directory = data::find_mnist({.log = &std::cerr})) {
    std::cout << "MNIST from " << directory->string() << '\n';
    return data::mnist(directory);
  }
  std::cout << "MNIST was neither found nor downloaded: training on 60,000 digits RENDERED by the library instead.\n"
               "Their accuracy says nothing about MNIST; give --data DIR for the real one.\n";
  return {data::synthetic_digits(60'000, 1), data::synthetic_digits(10'000, 2)};
}

void refuse_batch(int size, std::initializer_list<int> known) {
  std::string sizes;
  for (int each : known) sizes += ' ' + std::to_string(each);
  throw strata::strata_error("--batch " + std::to_string(size) + ": this program was built for" + sizes);
}

}  // namespace examples
