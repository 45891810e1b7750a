// A range of gradients that is reduced at a time.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// Elements [begin, end) of the arena of parameters: complete when the backward of group `group` of the plan is.
struct gradient_bucket {
  long begin = 0, end = 0;
  int group = 0;
  const char* name = "gradients";  // lasts as a literal does: "gradients of conv2d_1 ... dense"
};

}  // namespace strata::core
