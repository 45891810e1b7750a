// The size of messages between ranks that divide layers.
#pragma once
#include <algorithm>
#include <strata/network/network_of_rank.hpp>
#include <strata/network/parameter_ranges.hpp>

namespace strata::detail {

/// Elements per message when ranks copy parameters after an update, or gather them.
inline constexpr long elements_of_copies = 1L << 16;
/// Elements per message for the norms of parameters.
constexpr long elements_of_norms(long ranks) { return std::max(1L << 14, ranks * norm_piece); }
/// Samples that pass through the network together, unless compute_options::micro_batch sets their number.
inline constexpr int samples_of_rank_at_a_time = 256;

/// The largest number of elements that a divided layer sends per sample.
template <class Items>
inline constexpr long sent_of_a_sample = [] {
  constexpr const auto& t = tape_of<Items>;
  long most = 0;
  for (int i = 0; i < t.size; ++i)
    if (const auto& d = divisions_of<Items>[i]; d.shard_of)
      most = std::max({most, d.sends_forward(t.in(i)), d.sends_backward(t.in(i)), long(d.classes)});
  return most;
}();

}  // namespace strata::detail
