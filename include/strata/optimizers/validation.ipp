// Definitions of validation.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION void refuse(const char* who, const char* what, double value, const std::string& must) {
  throw_error({who, ": ", what, " = ", value, " must be ", must});
}

STRATA_FUNCTION void check_at_least_0(const char* who, const char* what, double value) {
  if (!(value >= 0 && std::isfinite(value))) refuse(who, what, value, "at least 0 and finite");
  if (!is_float_from_0(value)) refuse(who, what, value, "finite as float");
}

STRATA_FUNCTION void check_positive(const char* who, const char* what, double value) {
  if (!(value > 0 && std::isfinite(value))) refuse(who, what, value, "greater than 0 and finite");
  if (!is_positive_float(value))
    refuse(who, what, value, "from 1.2e-38 to 3.4e+38, so that it is neither 0 nor infinite as float");
}

STRATA_FUNCTION void check_below_1(const char* who, const char* what, double value) {
  if (!(value >= 0 && value < 1)) refuse(who, what, value, "at least 0 and below 1");
}

STRATA_FUNCTION void check_finite(const char* who, const char* what, double value) {
  if (!std::isfinite(value)) refuse(who, what, value, "finite");
}

}  // namespace strata::detail
