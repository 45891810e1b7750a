// The larger of two errors.
#pragma once

namespace strata::test {

/// nan if one of them is nan, which std::max would lose: a test must not pass if an error is nan.
inline double larger(double a, double b) { return a != a || a > b ? a : b; }

}  // namespace strata::test
