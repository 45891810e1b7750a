// What the MNIST examples share: command line, data and the one-line error.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <strata/strata.hpp>
#include <string>

namespace examples {

struct settings {
  std::string data, strategy = "one_device";
  int epochs = 3, batch = 64, threads = 0;
  std::uint64_t seed = 1;
};

/// The data set of the user, else the one found or downloaded, else digits that the library renders.
inline strata::data::train_and_test load(const settings& s) {
  using namespace strata;
  const auto directory = data::find_mnist({.directory = s.data, .log = s.data.empty() ? &std::cerr : nullptr});
  if (!s.data.empty() || directory) {
    auto found = data::mnist(s.data.empty() ? directory : std::filesystem::path(s.data));
    std::cout << "MNIST from " << (s.data.empty() ? directory->string() : s.data) << '\n';
    return found;
  }
  std::cout << "No MNIST on this machine, and no download: training on 60,000 digits RENDERED by the library instead.\n"
               "Their accuracy says nothing about MNIST; give --data DIR for the real one.\n";
  return {data::synthetic_digits(60'000, 1), data::synthetic_digits(10'000, 2)};
}

/// Calls f with data::batch<N> for the batch size that the user chose: a batch size is part of a data set's type.
template <int... Sizes, class F>
void with_batch(int size, F&& f) {
  bool found = false;
  ((size == Sizes ? (f(strata::data::batch<Sizes>), found = true) : false), ...);
  if (!found) {
    std::string known;
    ((known += ' ' + std::to_string(Sizes)), ...);
    throw strata::error("--batch " + std::to_string(size) + ": this program was built for" + known);
  }
}

/// Parses the command line, runs f(settings), and turns an error into one line and exit code 1.
template <class F>
int run(int argc, char** argv, const std::string& description, F&& f, void (*more)(CLI::App&) = nullptr) {
  settings s;
  CLI::App app(description);
  app.add_option("--data", s.data, "folder with the four IDX files of MNIST, raw or .gz");
  app.add_option("--epochs", s.epochs, "times through the data")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--batch", s.batch, "global batch size: 32, 64, 128 or 256")->capture_default_str();
  app.add_option("--seed", s.seed, "of weights and shuffling")->capture_default_str();
  app.add_option("--threads", s.threads, "0: all cores")->capture_default_str()->check(CLI::NonNegativeNumber);
  app.add_option("--strategy", s.strategy, "who computes")->capture_default_str()->check(CLI::IsMember({"one_device"}));
  if (more) more(app);
  CLI11_PARSE(app, argc, argv);
  try {
    f(s);
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << app.get_name() << ": " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}

}  // namespace examples
