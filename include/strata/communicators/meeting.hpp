// Messages that processes exchange before they are connected: addresses in the key/value store, and the hello over TCP.
#pragma once
#include <cstddef>
#include <cstdint>
#include <strata/net/field.hpp>
#include <string>
#include <vector>

namespace strata::detail {

/// The address at which a process listens for TCP connections.
struct tcp_address {
  std::string host{};
  int port = 0;
  std::uint64_t token = 0;
  static constexpr auto message_name = "TCP address";
  using fields = wire::fields<wire::field<1, &tcp_address::host, 1024>, wire::field<2, &tcp_address::port>,
                              wire::field<3, &tcp_address::token>>;
};

/// The first bytes that each side of a TCP connection sends. Its encoding always has the same size.
struct tcp_hello {
  std::uint64_t token = 0;  // that of the other side
  std::uint32_t rank = 0, size = 0;
  static constexpr auto message_name = "TCP hello";
  using fields =
      wire::fields<wire::field<1, &tcp_hello::token>, wire::field<2, &tcp_hello::rank>, wire::field<3, &tcp_hello::size>>;
  static constexpr std::size_t encoded_bytes = 9 + 5 + 5;
};

/// The address of a process's shared memory.
struct shared_memory_address {
  int pid = 0, file = -1;   // /proc/PID/fd/FILE
  std::uint64_t token = 0;  // the memory begins with it
  std::string space{};      // machine and PID namespace; empty: the process shares no memory
  static constexpr auto message_name = "shared memory address";
  using fields = wire::fields<wire::field<1, &shared_memory_address::pid>, wire::field<2, &shared_memory_address::file>,
                              wire::field<3, &shared_memory_address::token>, wire::field<4, &shared_memory_address::space, 1024>>;
};

/// Whose shared memory a process can map.
struct shared_memory_reach {
  bool whole_machine = false;  // that of all processes with the same `space`
  std::vector<int> ranks{};    // otherwise
  static constexpr auto message_name = "list of processes";
  using fields = wire::fields<wire::field<1, &shared_memory_reach::whole_machine>, wire::field<2, &shared_memory_reach::ranks>>;
};

}  // namespace strata::detail
