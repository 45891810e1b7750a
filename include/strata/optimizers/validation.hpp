// Checks of hyper-parameters.
#pragma once
#include <cmath>
#include <strata/base/error.hpp>
#include <strata/base/float_range.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/text.hpp>
#include <string>

namespace strata::detail {

/// Throws strata_error: "adam: beta_1 = 1 must be at least 0 and below 1".
[[noreturn]] void refuse(const char* who, const char* what, double value, const std::string& must);

/// The comparisons of these checks are false for nan, so that nan is refused. Values must be in the range of float, for every
/// precision.
void check_at_least_0(const char* who, const char* what, double value);
void check_positive(const char* who, const char* what, double value);
void check_below_1(const char* who, const char* what, double value);
void check_finite(const char* who, const char* what, double value);

/// Checks the settings common to all optimizers.
template <class Optimizer>
void check_common(const Optimizer& o) {
  check_at_least_0(Optimizer::name, "learning_rate", o.learning_rate(0));
  check_at_least_0(Optimizer::name, "weight_decay", o.weight_decay);
  check_at_least_0(Optimizer::name, "clipnorm", o.clipnorm);
  check_at_least_0(Optimizer::name, "clipvalue", o.clipvalue);
  check_at_least_0(Optimizer::name, "global_clipnorm", o.global_clipnorm);
  if ((o.clipnorm > 0) + (o.clipvalue > 0) + (o.global_clipnorm > 0) > 1)
    throw_error({Optimizer::name, ": only one of clipnorm, clipvalue and global_clipnorm can be set"});
}

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/optimizers/validation.ipp>
#endif
