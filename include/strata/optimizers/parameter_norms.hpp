// What a rule with norms knows about a whole parameter.
#pragma once

namespace strata {

/// Euclidean norms of one parameter, between the two passes of a parameterwise_rule.
struct parameter_norms {
  double weights;    // after weight decay
  double direction;  // of what propose() returned
};

}  // namespace strata
