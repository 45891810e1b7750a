// A small program with an installed package of strata: its headers are found, and declare their version.
#include <cstdio>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>
#include <strata/version.hpp>

using net = strata::sequential<strata::input<4>, strata::dense<2>>;

int main() {
  std::puts(STRATA_VERSION_STRING);
  return net::output_shape == strata::shape{2} ? 0 : 1;
}
