// The parts of the time of a fit.
#pragma once
#include <ostream>
#include <strata/base/text.hpp>

namespace strata {

/// The seconds of one process.
struct time_split {
  double input = 0;          // waiting for batches
  double compute = 0;        // steps, including those of validation, without the next two
  double communication = 0;  // sending messages
  double waiting = 0;        // waiting for messages of other processes
  double total = 0;          // the remainder is callbacks and printing

  friend bool operator==(const time_split&, const time_split&) = default;
  /// 12.3 s: input 2 %, compute 80 %, communication 10 %, waiting 8 %
  friend std::ostream& operator<<(std::ostream& out, const time_split& t) {
    const auto percent = [&](double part) { return t.total > 0 ? 100 * part / t.total : 0; };
    return out << detail::formatted("%.1f s: input %.0f %%, compute %.0f %%, communication %.0f %%, waiting %.0f %%", t.total,
                                    percent(t.input), percent(t.compute), percent(t.communication), percent(t.waiting));
  }
};

}  // namespace strata
