// Definitions of activations.hpp.
#pragma once

namespace strata::stablehlo {

STRATA_FUNCTION shifted_logits::shifted_logits(tensor x)
    : shifted(x - along_first_axes(reduce(reduction::maximum, x, {x.rank() - 1}), x)),
      exponentials(unary("exponential", shifted)),
      sums(reduce(reduction::add, exponentials, {x.rank() - 1})) {}

STRATA_FUNCTION tensor softmax_of(tensor x) {
  const shifted_logits s(x);
  return s.exponentials / along_first_axes(s.sums, x);
}

STRATA_FUNCTION void emission<softmax>::backward(operation_call& c) {
  const tensor dot = reduce(reduction::add, c.y * c.dy, {c.y.rank() - 1});
  c.set_dx(c.y * (c.dy - along_first_axes(dot, c.dy)));
}

}  // namespace strata::stablehlo
