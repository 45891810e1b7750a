// The ends of a network: its inputs and its outputs.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// The most inputs of a network, and the most outputs.
inline constexpr int max_ends = 8;

/// The number of inputs and outputs of a network, and the elements of a sample in each of them.
struct end_sizes {
  int input_count = 1, output_count = 1;
  long inputs[max_ends] = {}, outputs[max_ends] = {};
};

}  // namespace strata::core
