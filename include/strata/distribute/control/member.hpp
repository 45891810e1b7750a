// A process that takes part in a training, as it introduces itself to the coordinator or to a parameter server.
#pragma once
#include <cstdint>
#include <strata/base/text.hpp>
#include <strata/distribute/wire/field.hpp>
#include <string>

namespace strata::control {

struct member {
  int rank = 0, size = 1;
  std::string name{}, host{};  // "worker 1" and the host it runs on
  int pid = 0;
  std::uint64_t incarnation = 0;  // random: tells this process from another one that had its rank before
  std::string agreement{};        // cluster and program in words; they must be the same in all processes

  static constexpr auto message_name = "member";
  /// Rank and incarnation are in wire::sender.
  using fields = wire::fields<wire::field<1, &member::size>, wire::field<2, &member::name>, wire::field<3, &member::host>,
                              wire::field<4, &member::pid>, wire::field<5, &member::agreement>>;
};

/// "worker 1 (rank 1, node7, pid 4711)"
inline std::string to_string(const member& m) {
  return detail::text_of({m.name, " (rank ", m.rank, ", ", m.host, ", pid ", m.pid, ")"});
}

/// The sentence for two processes that do not train the same.
inline std::string disagreement(const std::string& who, const std::string& than, const std::string& there,
                                const std::string& here) {
  return detail::text_of({who, " does not train what ", than, ": '", there, "' there, '", here, "' here"});
}

}  // namespace strata::control
