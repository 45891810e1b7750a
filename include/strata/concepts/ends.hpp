// The ends of a network: its inputs and its outputs.
#pragma once

namespace strata {

/// The most inputs of a network, and the most outputs.
inline constexpr int max_ends = 8;

/// How many inputs and outputs a network has, and how many numbers a sample has in each of them.
struct end_sizes {
  int input_count = 1, output_count = 1;
  long inputs[max_ends] = {}, outputs[max_ends] = {};
};

}  // namespace strata
