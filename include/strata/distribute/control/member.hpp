// A process that takes part in a training, as it introduces itself to the coordinator or to a parameter server.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/base/text.hpp>
#include <strata/distribute/wire/field.hpp>
#include <string>
#include <string_view>
#include <utility>

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

/// The pieces of two texts between those with which both begin and end. A piece ends with a comma or a semicolon.
inline std::pair<std::string, std::string> differences_of(std::string_view a, std::string_view b) {
  constexpr std::size_t most = 300;  // characters: the first difference is what helps
  const auto ends_piece = [](char c) { return c == ',' || c == ';'; };
  std::size_t begin = 0, end = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (ends_piece(a[i])) begin = i + 1;
  const std::string_view rest[] = {a.substr(begin), b.substr(begin)};
  const std::size_t shorter = std::min(rest[0].size(), rest[1].size());
  for (std::size_t i = 0; i < shorter && rest[0][rest[0].size() - 1 - i] == rest[1][rest[1].size() - 1 - i]; ++i)
    if (ends_piece(rest[0][rest[0].size() - 1 - i])) end = i + 1;
  const auto text = [&](std::string_view all) {
    std::string_view part = all.substr(0, all.size() - end);
    if (part.starts_with(' ')) part.remove_prefix(1);
    return part.size() <= most ? std::string(part) : detail::text_of({part.substr(0, most), "..."});
  };
  return {text(rest[0]), text(rest[1])};
}

/// The sentence for two processes that do not train the same: it quotes what differs.
inline std::string disagreement(const std::string& who, const std::string& than, const std::string& there,
                                const std::string& here) {
  const auto [theirs, ours] = differences_of(there, here);
  return detail::text_of({who, " does not train what ", than, ": '", theirs, "' there, '", ours, "' here"});
}

}  // namespace strata::control
