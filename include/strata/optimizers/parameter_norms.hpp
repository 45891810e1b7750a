// What a rule with norms knows about a whole parameter.
#pragma once

namespace strata {

/// Euclidean norms of one parameter, before the last pass of a parameterwise_rule or a factored_rule.
struct parameter_norms {
  double weights;    // after weight decay
  double direction;  // of what propose() returned
  long elements = 1;
};

}  // namespace strata
