// tpu_vms: the hosts of a slice of Cloud TPU VMs, from the metadata server.
#pragma once
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/net/dial.hpp>
#include <strata/resolvers/environment.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace strata {

namespace detail {
/// An attribute of this virtual machine, as the metadata server of Google Compute Engine answers. Throws strata_error.
/// https://cloud.google.com/compute/docs/metadata/querying-metadata
inline std::string attribute_of_machine(const std::string& name, const endpoint& server, std::chrono::milliseconds timeout) {
  constexpr std::size_t most = 1 << 20;  // bytes of an answer: more than the addresses of the largest slice
  const steady_time deadline = std::chrono::steady_clock::now() + timeout;
  const auto refuse = [&](const std::string& why) {
    throw_error({"the metadata server at ", to_string(server), ' ', why, " when asked for ", name});
  };
  const auto wait = [&](int socket, short events) {
    if (!wait_for_socket(socket, events, deadline)) refuse(text_of({"does not answer within ", timeout.count(), " ms"}));
  };
  const auto [socket, address] = [&] {
    try {
      return dial(server, deadline);
    } catch (const communication_error& e) {
      throw_error({"the metadata server at ", to_string(server), " cannot be reached (", e.what(),
                   "); only TPU VMs have one: elsewhere tpu_workers() or explicit_cluster names the hosts"});
    }
  }();
  const std::string request = text_of({"GET /computeMetadata/v1/instance/attributes/", name, " HTTP/1.0\r\nHost: ", server.host,
                                       "\r\nMetadata-Flavor: Google\r\n\r\n"});
  for (std::string_view rest = request; !rest.empty();) {
    wait(socket.number(), POLLOUT);
    const ::ssize_t sent = ::send(socket.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) refuse(text_of({"fails: ", std::generic_category().message(errno)}));
    if (sent > 0) rest.remove_prefix(std::size_t(sent));
  }
  std::string answer;
  for (char piece[4096];;) {
    wait(socket.number(), POLLIN);
    const ::ssize_t got = ::recv(socket.number(), piece, sizeof piece, 0);
    if (got == 0) break;
    if (got < 0 && errno != EAGAIN && errno != EINTR) refuse(text_of({"fails: ", std::generic_category().message(errno)}));
    if (got > 0) answer.append(piece, std::size_t(got));
    if (answer.size() > most) refuse("sends more than a megabyte");
  }
  const std::size_t head = answer.find("\r\n\r\n");
  const std::string status = answer.substr(0, answer.find("\r\n")).substr(0, 60);
  if (head == answer.npos || !status.starts_with("HTTP/1.")) refuse("does not speak HTTP");
  if (status.size() < 12 || status.substr(8, 4) != " 200") refuse(text_of({"returns '", status, "'"}));
  const std::string body = answer.substr(head + 4);
  const std::string fields = lower_case(answer.substr(0, head)), length = "\r\ncontent-length:";
  if (const std::size_t at = fields.find(length); at != fields.npos) {
    std::uint64_t bytes = 0;
    const std::size_t digits = std::min(fields.find_first_not_of(" \t", at + length.size()), fields.size());
    std::from_chars(fields.data() + digits, fields.data() + fields.size(), bytes);
    if (body.size() < bytes) refuse(text_of({"sends ", body.size(), " of ", bytes, " bytes"}));
  }
  return body;
}
}  // namespace detail

/// One worker on each host of a slice of Cloud TPU VMs. The VM's metadata server, http://metadata.google.internal or the address
/// in the environment variable GCE_METADATA_IP, has the addresses of all hosts and the number of this one. Worker 0 coordinates,
/// at `port`. Throws strata_error with the answer of the server, or if there is no server.
/// https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py reads the same attributes.
struct tpu_vms {
  std::uint16_t port = 8476;
  core::environment_reader environment = core::process_environment;
  std::chrono::milliseconds timeout = std::chrono::seconds(10);  // of a question to the server

  cluster operator()() const {
    return detail::resolved_by("tpu_vms", [&] {
      const auto named = detail::variables(environment).text("GCE_METADATA_IP");
      const std::string at = named.value_or("metadata.google.internal");
      const core::endpoint server = at.find(':') == at.npos ? core::endpoint{at, 80} : core::parse_endpoint(at);
      cluster_spec spec;
      // "unknown:unknown:10.0.0.2,unknown:unknown:10.0.0.3". An address of IPv6 would have more colons.
      constexpr std::string_view digits = "0123456789",
                                 of_host = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
      std::string all = detail::attribute_of_machine("worker-network-endpoints", server, timeout);
      all.erase(all.find_last_not_of("\r\n ") + 1);
      for (std::string_view rest = all;;) {
        const std::string_view one = rest.substr(0, rest.find(','));
        const std::size_t first = one.find(':'), second = first == one.npos ? first : one.find(':', first + 1);
        const std::string_view address = second == one.npos ? std::string_view() : one.substr(second + 1),
                               host = address.substr(0, address.find(':'));
        if (host.empty() || host.find_first_not_of(of_host) != host.npos ||
            address.find_first_not_of(digits, host.size() + 1) != address.npos)
          throw_error({"worker-network-endpoints is '", all.substr(0, 200), "', which is not a list of id:id:address"});
        spec.worker.push_back(core::endpoint{std::string(host), port});
        if (one.size() == rest.size()) break;
        rest.remove_prefix(one.size() + 1);
      }
      const std::string own = detail::attribute_of_machine("agent-worker-number", server, timeout);
      int number = 0;
      const auto [end, failed] = std::from_chars(own.data(), own.data() + own.size(), number);
      if (failed != std::errc() || own.find_first_not_of("\r\n ", std::size_t(end - own.data())) != own.npos || number < 0 ||
          number >= int(spec.worker.size()))
        throw_error({"agent-worker-number is '", own.substr(0, 60), "', but worker-network-endpoints lists ", spec.worker.size(),
                     " hosts"});
      spec.task = {role::worker, number};
      return spec;
    });
  }
};

}  // namespace strata
