// The larger of two errors.
#pragma once

namespace strata::test {

/// nan if one of them is nan, where std::max would forget it: a test must not pass with a nan among its numbers.
inline double larger(double a, double b) { return a != a || a > b ? a : b; }

}  // namespace strata::test
