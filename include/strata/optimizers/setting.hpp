// A setting of an optimizer, with its name.
#pragma once

namespace strata {

struct optimizer_setting {
  const char* name;
  double value;
};

}  // namespace strata
