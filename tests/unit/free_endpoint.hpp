// An address of this machine at which nothing listens.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <strata/io/file_descriptor.hpp>
#include <strata/net/endpoint.hpp>
#include <system_error>

namespace strata::test {

/// An address of this machine with a port that is free at the moment.
inline core::endpoint free_endpoint() {
  const io::file_descriptor s(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(s.number(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(s.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "no free port");
  return {"127.0.0.1", ntohs(address.sin_port)};
}

}  // namespace strata::test
