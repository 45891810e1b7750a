// Definitions of dense.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION tensor dense_forward(operation_call& c) {
  const tensor y = dot_general(c.factor(c.x[0]), c.factor(c.w[0]), 1, 0, c.step.number, c.precision());
  return c.w.size() > 1 ? y + along_last_axis(c.w[1], y) : y;
}
STRATA_FUNCTION void dense_backward(operation_call& c) {
  const tensor dy = c.factor(c.dy);
  if (c.wants_dx[0]) c.set_dx(dot_general(dy, c.factor(c.w[0]), 1, 1, c.step.number, c.precision()));
  if (c.wants_dw[0]) c.dw[0] = dot_general(c.factor(c.x[0]), dy, 0, 0, c.step.number, c.precision());
  if (c.w.size() > 1 && c.wants_dw[1]) c.dw[1] = sum_per_channel(c.dy);
}

}  // namespace strata::stablehlo::detail
