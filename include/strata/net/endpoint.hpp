// endpoint: the host and port where a process listens.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <string>
#include <string_view>

namespace strata {

namespace detail {
/// Host names are compared without regard to case, as in the domain name system.
inline bool same_host(const std::string& a, const std::string& b) { return lower_case(a) == lower_case(b); }
}  // namespace detail

namespace core {
inline constexpr std::size_t longest_host = 255;  // characters, as in the domain name system

struct endpoint {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const endpoint& a, const endpoint& b) { return a.port == b.port && detail::same_host(a.host, b.host); }
};

/// "node1:2222", or "[::1]:2222" for an IPv6 address.
inline std::string to_string(const endpoint& e) {
  const bool ipv6 = e.host.find(':') != std::string::npos;
  return detail::text_of({ipv6 ? '[' + e.host + ']' : e.host, ':', e.port});
}

/// Reads "host:port" or "[IPv6 address]:port". Throws strata_error, which quotes the text.
inline endpoint parse_endpoint(std::string_view text) {
  const auto refuse = [&](const std::string& why) -> void { throw_error({'\'', text, "' ", why}); };
  if (text.empty()) refuse("is not an address: write host:port");
  if (text.find("://") != text.npos) refuse("is a URL: write host:port");
  if (text.find_first_of(" \t\r\n,;/'\"") != text.npos) refuse("has a character that addresses do not have: write host:port");

  std::string_view host, port;
  if (text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == text.npos) refuse("has no ']' after the IPv6 address");
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty() || rest.front() != ':') refuse("has no port: write [address]:port");
    port = rest.substr(1);
  } else {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) refuse("has no port: write host:port");
    if (text.find(':', colon + 1) != text.npos) refuse("has several colons: write an IPv6 address as [address]:port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.size() > longest_host)
    throw_error({"the host of an address has ", host.size(), " characters; the limit is ", longest_host});
  if (host.empty()) refuse("has no host in front of the port");
  if (port.empty()) refuse("has no port after the colon");

  endpoint e{std::string(host), 0};
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), e.port);
  if (failed != std::errc() || end != port.data() + port.size() || e.port == 0)
    refuse(detail::text_of({"has the port '", port, "', which is not a number from 1 to 65535"}));
  return e;
}
}  // namespace core

}  // namespace strata
