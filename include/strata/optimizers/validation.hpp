// Refusing hyper-parameters that make no sense.
#pragma once
#include <cmath>
#include <limits>
#include <sstream>
#include <strata/base/error.hpp>
#include <string>

namespace strata::detail {

[[noreturn]] inline void refuse(const char* who, const char* what, double value, const std::string& must) {
  std::ostringstream text;
  text << who << ": " << what << " = " << value << " must be " << must;
  throw error(text.str());
}

/// Written so that nan is refused, too.
inline void check_at_least_0(const char* who, const char* what, double value) {
  if (!(value >= 0 && value < std::numeric_limits<double>::infinity())) refuse(who, what, value, "at least 0 and finite");
}
inline void check_positive(const char* who, const char* what, double value) {
  if (!(value > 0 && value < std::numeric_limits<double>::infinity())) refuse(who, what, value, "greater than 0 and finite");
}
inline void check_below_1(const char* who, const char* what, double value) {
  if (!(value >= 0 && value < 1)) refuse(who, what, value, "at least 0 and below 1");
}
inline void check_finite(const char* who, const char* what, double value) {
  if (!std::isfinite(value)) refuse(who, what, value, "finite");
}

/// What all optimizers have.
template <class Optimizer>
void check_common(const Optimizer& o) {
  check_at_least_0(Optimizer::name, "learning_rate", o.learning_rate(0));
  check_at_least_0(Optimizer::name, "weight_decay", o.weight_decay);
  check_at_least_0(Optimizer::name, "clipnorm", o.clipnorm);
  check_at_least_0(Optimizer::name, "clipvalue", o.clipvalue);
  check_at_least_0(Optimizer::name, "global_clipnorm", o.global_clipnorm);
  if ((o.clipnorm > 0) + (o.clipvalue > 0) + (o.global_clipnorm > 0) > 1)
    throw error(std::string(Optimizer::name) + ": only one of clipnorm, clipvalue and global_clipnorm can be set");
}

}  // namespace strata::detail
