// How far behind the newest parameters those may be that a worker of a parameter server computes with.
#pragma once
#include <string>
#include <variant>

namespace strata {

/// Nobody waits: each gradient is applied as it comes (Dean et al., "Large scale distributed deep networks", 2012).
struct asynchronous {};

/// A worker waits while it is more than `steps` ahead of the slowest (Ho et al., "More effective distributed ML via a stale
/// synchronous parallel parameter server", 2013). Those that have left or are gone hold up nobody.
struct bounded_staleness {
  int steps = 0;
};

/// All workers read the same global batches and compute their share of the leaves; a server waits for all and adds them in the
/// tree in which one process does.
struct synchronous {};

using staleness_policy = std::variant<asynchronous, bounded_staleness, synchronous>;

inline bool is_synchronous(const staleness_policy& p) { return std::holds_alternative<synchronous>(p); }
inline std::string to_string(const staleness_policy& p) {
  if (const auto* bounded = std::get_if<bounded_staleness>(&p))
    return "bounded_staleness{" + std::to_string(bounded->steps) + '}';
  return is_synchronous(p) ? "synchronous" : "asynchronous";
}

}  // namespace strata
