// needs: openssl
// The messages of an unauthenticated peer, to a server or to a client.
#include <strata/net/tls_stream.hpp>
#include <sys/socket.h>

#include <array>

#include "fuzz.hpp"
using namespace strata;

namespace {
const detail::tls_identity& identity() {
  static const detail::tls_identity with_a_key(detail::shared_key{1, 2, 3});
  return with_a_key;
}

/// The other end of a connection.
struct stranger {
  io::file_descriptor socket{};
  detail::tls_stream stream;

  explicit stranger(bool calls_a_server) : stranger(calls_a_server, connected()) {}
  stranger(bool calls_a_server, std::array<io::file_descriptor, 2> ends)
      : socket(std::move(ends[0])), stream(std::move(ends[1]), identity(), calls_a_server) {}

  static std::array<io::file_descriptor, 2> connected() {
    int ends[2] = {-1, -1};
    fuzz::check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    return {io::file_descriptor(ends[0]), io::file_descriptor(ends[1])};
  }
  std::string hear() const {
    std::string heard(1 << 16, '\0');
    const ::ssize_t bytes = ::recv(socket.number(), heard.data(), heard.size(), 0);
    heard.resize(std::size_t(std::max<::ssize_t>(bytes, 0)));
    return heard;
  }
  void say(std::string_view words) const { ::send(socket.number(), words.data(), words.size(), MSG_NOSIGNAL); }
};

std::vector<std::string> seeds() {
  stranger server(false), client(true);
  server.stream.greet();
  const std::string first = server.hear();  // the first message of a client
  client.say(first);
  client.stream.greet();
  const std::string answer = client.hear();
  server.say(answer);
  fuzz::check(server.stream.greet().waits_for == 0);
  const std::string last = server.hear();
  client.say(last);
  fuzz::check(client.stream.greet().waits_for == 0);
  return {fuzz::with_choice(1, first), fuzz::with_choice(0, answer), fuzz::with_choice(1, first + last)};
}

void read(std::string_view input) {
  const fuzz::choice chosen(input);
  stranger other(chosen.number & 1);
  other.say(chosen.rest);
  ::shutdown(other.socket.number(), SHUT_WR);
  const detail::stream_progress greeted = other.stream.greet();
  fuzz::check(greeted.is_broken || greeted.is_closed);  // the peer has no key, so the handshake must fail
  fuzz::check(greeted.is_closed || !other.stream.why_broken().empty());
}

const fuzz::target handshake{"handshake", seeds, read};
}  // namespace
