// A member of a cluster, for tests of the control plane without a network.
#pragma once
#include <cstdint>
#include <strata/control/member.hpp>
#include <string>
#include <utility>

namespace strata::test {

inline control::member worker(int rank, int size, std::uint64_t incarnation = 0, std::string agreement = "the same") {
  return {.rank = rank,
          .size = size,
          .name = "worker " + std::to_string(rank),
          .host = "node" + std::to_string(rank),
          .pid = 100 + rank,
          .incarnation = incarnation ? incarnation : std::uint64_t(1000 + rank),
          .agreement = std::move(agreement)};
}

}  // namespace strata::test
