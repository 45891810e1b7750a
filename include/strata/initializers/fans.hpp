// The number of inputs and outputs that a kernel connects.
#pragma once
#include <strata/base/shape.hpp>

namespace strata::core {

/// As in Keras. Kernel (in, out) of dense: in and out. Kernel (KH, KW, in, out) of a convolution: both times KH * KW.
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

}  // namespace strata::core
