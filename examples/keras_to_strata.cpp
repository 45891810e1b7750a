// Turns the architecture in a file of Keras into a header with the type of the network: keras_to_strata model.keras > net.hpp
// needs: hdf5 libzip
// takes: 1 s
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <strata/interop/keras/network_text.hpp>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view usage =
    "keras_to_strata model.keras [NAME] > net.hpp: writes the network of a .keras or .h5 file as a header for strata, in the\n"
    "namespace NAME, or keras_model. load_weights of a trainer or a predictor then reads the weights from the same file. Layers "
    "and\n"
    "options that strata does not have are listed on standard error; then nothing is written, and the status is 1.\n";

/// Whether a name can be that of a namespace in the header.
bool is_identifier(std::string_view name) {
  if (std::ranges::find(strata::keras::keywords, name) != std::end(strata::keras::keywords)) return false;
  if (name == "std" || name == "strata" || name == "main") return false;
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
}

/// A text without control characters, for a comment of one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (std::iscntrl(static_cast<unsigned char>(c)) || c == '\\') c = ' ';
  return text;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3 || argv[1] == std::string_view("--help")) {
    std::cout << usage;
    return argc == 2 ? 0 : 1;
  }
  const std::string file = argv[1], name = argc == 3 ? argv[2] : "keras_model";
  if (!is_identifier(name)) throw strata::strata_error({"'", name, "' is not a valid name of a namespace"});
  const strata::keras::network_text network = strata::keras::network_text_of(strata::keras::read_architecture(file));
  if (!network.unknown.empty()) {
    std::cerr << file << " has layers or options that strata does not have:\n";
    for (const std::string& what : network.unknown) std::cerr << "  " << one_line(what) << '\n';
    return 1;
  }
  std::cout << "// The network of " << one_line(std::filesystem::path(file).filename().string())
            << ", made by keras_to_strata.\n";
  for (const std::string& note : network.notes) std::cout << "// " << one_line(note) << '\n';
  std::cout << "#pragma once\n#include <strata/strata.hpp>\n\nnamespace " << name << " {\nusing namespace strata;\n\n"
            << network.structs << (network.structs.empty() ? "" : "\n") << "using network = " << network.type
            << ";\n\n}  // namespace " << name << '\n';
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
