// Where the time of a fit went.
#pragma once
#include <ostream>
#include <strata/base/text.hpp>

namespace strata {

/// Of one process, in seconds.
struct time_split {
  double input = 0;          // until a batch was there
  double compute = 0;        // steps, those of validation included, but for what follows
  double communication = 0;  // handing messages over
  double waiting = 0;        // for messages of other processes, which are on their way or not sent yet
  double total = 0;          // the rest of it is callbacks and printing

  friend bool operator==(const time_split&, const time_split&) = default;
  /// 12.3 s: input 2 %, compute 80 %, communication 10 %, waiting 8 %
  friend std::ostream& operator<<(std::ostream& out, const time_split& t) {
    const auto percent = [&](double part) { return t.total > 0 ? 100 * part / t.total : 0; };
    return out << detail::formatted("%.1f s: input %.0f %%, compute %.0f %%, communication %.0f %%, waiting %.0f %%", t.total,
                                    percent(t.input), percent(t.compute), percent(t.communication), percent(t.waiting));
  }
};

}  // namespace strata
