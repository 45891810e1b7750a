// How many inputs and outputs a weight connects.
#pragma once
#include <strata/base/shape.hpp>

namespace strata {

/// As Keras counts them: (in, out) of a matrix; times the receptive field for a convolution's (KH, KW, in, out).
struct fans {
  double in, out;

  constexpr explicit fans(shape s) : in(1), out(1) {
    const int rank = s.rank();
    if (rank == 1) {
      in = out = s[0];
    } else if (rank > 1) {
      const double receptive = double(s.size()) / (double(s[rank - 1]) * s[rank - 2]);
      in = s[rank - 2] * receptive;
      out = s[rank - 1] * receptive;
    }
  }
};

}  // namespace strata
