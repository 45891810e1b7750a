// Common parts of the MNIST examples: command line, data and the one-line error.
#pragma once
#include <cstdint>
#include <strata/data/sets/train_and_test.hpp>
#include <strata/data/views/batch.hpp>
#include <string>

namespace examples {

struct settings {
  std::string data, strategy = "one_device";
  int epochs = 3, batch = 64, threads = 0;
  std::uint64_t seed = 1;
};

/// Parses the command line, runs `train`, and turns an error into one line and exit code 1.
int run(int argc, char** argv, const std::string& description, void (*train)(const settings&));

/// The data set named on the command line, else MNIST if it is found or downloaded, else rendered digits.
strata::data::train_and_test load(const settings& s);

[[noreturn]] void refuse_batch(int size, std::initializer_list<int> known);

/// Calls f with data::batch<N> for the batch size on the command line: the batch size is part of a data set's type.
template <int... Sizes, class F>
void with_batch(int size, F&& f) {
  if (!((size == Sizes ? (f(strata::data::batch<Sizes>), true) : false) || ...)) refuse_batch(size, {Sizes...});
}

}  // namespace examples
