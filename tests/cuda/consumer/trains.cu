// The program of the consumers in this folder: it trains on a GPU, or prints why it cannot.
#include <cstdio>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>
using namespace strata;

int main() {
  try {
    trainer model{sequential<input<4>, dense<8, relu>, dense<1>>{}, sgd{}, mean_squared_error{}, one_device{gpu(0)}};
    model.fit(std::vector<float>(64), std::vector<float>(16), verbosity::off);
  } catch (const strata_error& e) {
    std::puts(e.what());
  }
}
