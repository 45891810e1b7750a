// Staleness: how old the parameters may be with which a worker computes a gradient.
#pragma once
#include <strata/base/text.hpp>
#include <string>
#include <variant>

namespace strata {

/// Workers do not wait: each gradient is applied when it arrives (Dean et al., "Large scale distributed deep networks", 2012).
struct asynchronous {};

/// A worker waits while it is more than `steps` ahead of the slowest (Ho et al., "More effective distributed ML via a stale
/// synchronous parallel parameter server", 2013). Workers that have left or are gone do not count.
struct bounded_staleness {
  int steps = 0;
};

/// All workers read the same global batches and compute their share of the leaves. A server waits for all gradients and adds them
/// in the tree in which one process adds them.
struct synchronous {};

using staleness_policy = std::variant<asynchronous, bounded_staleness, synchronous>;

namespace core {
inline bool is_synchronous(const staleness_policy& p) { return std::holds_alternative<synchronous>(p); }
}  // namespace core

inline std::string to_string(const staleness_policy& p) {
  if (const auto* bounded = std::get_if<bounded_staleness>(&p))
    return detail::text_of({"bounded_staleness{", bounded->steps, '}'});
  return core::is_synchronous(p) ? "synchronous" : "asynchronous";
}

}  // namespace strata
