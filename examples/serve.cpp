// Serves a trained network: one image a line in, the digit and its probability out.
// takes: 1 s for a thousand lines
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "support/digit_predictor.hpp"

int main(int argc, char** argv) try {
  const std::string file = argc == 2 ? argv[1] : "--help";
  if (file == "--help") {
    std::puts(
        "serve digits.safetensors: reads images from standard input, 784 numbers in [0, 1] a line, and answers each with the "
        "digit\n"
        "and its probability. examples/run quickstart writes the file.");
    return argc == 2 ? 0 : 1;
  }
  const digit_predictor predict(file);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream numbers(line);
    std::vector<float> image;
    for (float pixel; numbers >> pixel;) image.push_back(pixel);
    if (image.size() != digit_predictor::pixels || !numbers.eof()) {
      std::cout << "error: a line has " << digit_predictor::pixels << " numbers" << std::endl;
      continue;
    }
    const auto probabilities = predict(std::span<const float, digit_predictor::pixels>(image));
    const auto best = std::ranges::max_element(probabilities);
    std::cout << best - probabilities.begin() << ' ' << *best << std::endl;
  }
} catch (const std::exception& e) {
  std::cerr << "serve: " << e.what() << '\n';
  return 1;
}
