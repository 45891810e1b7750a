// A model behind a plain interface: support/digit_model.cpp compiles the network, this file nothing of strata.
// takes: 1 s on two cores
#include <array>
#include <cstdio>
#include <string_view>

#include "support/digit_model.hpp"

int main(int argc, char** argv) {
  if (argc > 1) {
    std::puts("Trains a classifier of digits that another file compiles, and asks it about a vertical stroke.");
    return std::string_view(argv[1]) == "--help" ? 0 : 1;
  }
  digit_model model;
  const double accuracy = model.train(5'000, 3);
  std::printf("accuracy on unseen digits: %.3f\n", accuracy);
  std::array<float, 28 * 28> image{};
  for (std::size_t row = 5; row < 23; ++row) image[row * 28 + 13] = image[row * 28 + 14] = 1;
  std::printf("a vertical stroke is read as %d\n", model.classify(image));
  return accuracy > 0.9 ? 0 : 1;
}
