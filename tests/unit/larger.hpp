// The larger of two errors.
#pragma once

namespace strata::test {

/// The larger value; nan if one of them is, unlike std::max: a test must not pass if an error is nan.
inline double larger(double a, double b) { return a != a || a > b ? a : b; }

}  // namespace strata::test
