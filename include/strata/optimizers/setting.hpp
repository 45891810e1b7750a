// A setting of an optimizer, with its name.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

struct optimizer_setting {
  const char* name;
  double value;
};

}  // namespace strata::core
