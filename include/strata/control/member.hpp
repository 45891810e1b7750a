// A process that takes part in a training, as it introduces itself to the coordinator or to a parameter server.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/text.hpp>
#include <strata/control/agreement.hpp>
#include <strata/net/field.hpp>
#include <string>
#include <vector>

namespace strata::control {

struct member {
  int rank = 0, size = 1;
  std::string name{}, host{};  // "worker 1" and the host it runs on
  int pid = 0;
  std::uint64_t incarnation = 0;   // random: tells this process from another one that had its rank before
  control::agreement agreement{};  // on program and cluster

  static constexpr auto message_name = "member";
  /// Rank and incarnation are in wire::sender.
  using fields = wire::fields<wire::field<1, &member::size>, wire::field<2, &member::name>, wire::field<3, &member::host>,
                              wire::field<4, &member::pid>, wire::field<5, &member::agreement>>;
};

/// Text from another process, shortened and without control characters.
inline std::string printable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return text;
}

/// "worker 1 (rank 1, node7, pid 4711)"
inline std::string to_string(const member& m) {
  return detail::text_of({m.name, " (rank ", m.rank, ", ", m.host, ", pid ", m.pid, ")"});
}

/// The first eight of a list, and how many more there are.
inline std::string to_string(const std::vector<member>& all) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) text += detail::text_of({i == 0 ? "" : ", ", to_string(all[i])});
  return all.size() > most ? detail::text_of({text, " and ", all.size() - most, " more"}) : text;
}

}  // namespace strata::control
