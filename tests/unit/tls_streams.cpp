// needs: openssl protozero
// Connections that others can neither read nor change: equal and different keys, messages of all sizes.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <memory>
#include <random>
#include <strata/communicators/tcp.hpp>
#include <strata/net/tls_stream.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "repetitions.hpp"
using namespace strata;
using namespace strata::core;
using detail::stream_progress, detail::tls_stream;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
detail::shared_key key_of(unsigned char first) {
  detail::shared_key key{};
  key[0] = first;
  return key;
}
std::pair<io::file_descriptor, io::file_descriptor> two_ends() {
  int ends[2] = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  return {io::file_descriptor(ends[0]), io::file_descriptor(ends[1])};
}
struct two_streams {
  tls_stream accepts, opens;

  two_streams(std::pair<io::file_descriptor, io::file_descriptor> ends, unsigned char key, unsigned char other)
      : accepts(std::move(ends.first), detail::tls_identity(key_of(key)), true),
        opens(std::move(ends.second), detail::tls_identity(key_of(other)), false) {}
  two_streams(unsigned char key, unsigned char other) : two_streams(two_ends(), key, other) {}

  /// Performs the handshake. The reason why one end refuses the other; empty if both accept.
  std::string greet() {
    for (bool both = false; !both;) {
      both = true;
      for (tls_stream* s : {&opens, &accepts}) {
        const stream_progress p = s->greet();
        if (p.is_closed) return "closed";
        if (p.is_broken) return s->why_broken();
        both = both && p.waits_for == 0;
      }
    }
    return "";
  }
};
/// A store whose process reads nothing until `opens` is counted down.
struct late_store final : key_value_store {
  key_value_store& store;
  std::latch opens{1};

  explicit late_store(key_value_store& s) : store(s) {}
  void set(const std::string& key, const std::string& value) override { store.set(key, value); }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    opens.wait();
    return store.get(key, timeout);
  }
};
std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 r(seed);
  std::vector<std::byte> all(count);
  for (std::byte& b : all) b = std::byte(r());
  return all;
}
}  // namespace

TEST_CASE("both sides have the key, or the connection is refused by both") {
  two_streams same(7, 7);
  CHECK(same.greet() == "");
  two_streams different(7, 8);
  CHECK(different.greet() != "");
  CHECK((different.accepts.is_refused() || different.opens.is_refused()));
  stream_progress p = different.opens.greet();
  CHECK((p.is_broken || p.is_closed));
}

TEST_CASE("bytes that are no TLS are refused, and so is a side that has a certificate of its own instead of the key") {
  auto [near, far] = two_ends();
  tls_stream accepts(std::move(near), detail::tls_identity(key_of(7)), true);
  CHECK(accepts.greet().waits_for == POLLIN);
  const std::string garbage = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and more of it, which is no handshake either";
  REQUIRE(::send(far.number(), garbage.data(), garbage.size(), 0) == ssize_t(garbage.size()));
  CHECK(accepts.greet().is_broken);
  CHECK(accepts.is_refused());
}

TEST_CASE("keys are renewed while both sides write and the socket is full: every byte arrives, and neither waits for ever") {
  auto ends = two_ends();
  const int small = 4096;
  for (const io::file_descriptor* e : {&ends.first, &ends.second})
    REQUIRE(::setsockopt(e->number(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  tls_stream a(std::move(ends.first), detail::tls_identity(key_of(7)), true, {}, 1 << 15),
      b(std::move(ends.second), detail::tls_identity(key_of(7)), false, {}, 1 << 15);
  for (int i = 0; i < 4; ++i) b.greet(), a.greet();
  struct way {
    tls_stream &from, &to;
    std::vector<std::byte> out, in;
    std::size_t sent = 0, got = 0;
  };
  way ways[] = {{a, b, random_bytes(2'000'000, 1), std::vector<std::byte>(2'000'000)},
                {b, a, random_bytes(2'000'000, 2), std::vector<std::byte>(2'000'000)}};
  for (const auto until = steady_clock::now() + 60s; steady_clock::now() < until;) {
    for (way& w : ways) w.sent += w.from.write(w.out.data() + w.sent, w.out.size() - w.sent).bytes;
    for (way& w : ways) w.got += w.to.read(w.in.data() + w.got, w.in.size() - w.got).bytes;
    if (ways[0].got == ways[0].in.size() && ways[1].got == ways[1].in.size()) break;
  }
  for (const way& w : ways) CHECK(w.in == w.out);
}

TEST_CASE("what travels cannot be read, and what was changed on the way is not taken") {
  auto [near, middle_a] = two_ends();
  auto [middle_b, far] = two_ends();
  tls_stream accepts(std::move(near), detail::tls_identity(key_of(7)), true),
      opens(std::move(far), detail::tls_identity(key_of(7)), false);
  std::string seen;
  const auto carry = [&](const io::file_descriptor& from, const io::file_descriptor& to, bool changes) {
    char bytes[1 << 16];
    const ssize_t got = ::recv(from.number(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return;
    seen.append(bytes, std::size_t(got));
    if (changes) bytes[got / 2] = static_cast<char>(bytes[got / 2] ^ 1);
    REQUIRE(::send(to.number(), bytes, std::size_t(got), 0) == got);
  };
  for (int i = 0; i < 4; ++i) {
    opens.greet(), carry(middle_b, middle_a, false);
    accepts.greet(), carry(middle_a, middle_b, false);
  }
  const std::string secret = "the weights of the last layer, in plain text";
  const auto* const bytes = reinterpret_cast<const std::byte*>(secret.data());
  std::vector<std::byte> got(100);
  CHECK(opens.write(bytes, secret.size()).bytes == secret.size());
  carry(middle_b, middle_a, false);
  CHECK(accepts.read(got.data(), got.size()).bytes == secret.size());
  CHECK(std::memcmp(got.data(), secret.data(), secret.size()) == 0);
  CHECK_FALSE(contains(seen, "weights"));
  CHECK(opens.write(bytes, secret.size()).bytes == secret.size());
  carry(middle_b, middle_a, true);
  CHECK(accepts.read(got.data(), got.size()).is_broken);
}

TEST_CASE("messages of all sizes, in both directions at once, arrive whole and in order; another key is named") {
  constexpr std::size_t sizes[] = {0, 1, 7, 70'000, 6'000'000, 3, 0, 4'088, 4'089, 200'000};
  constexpr int size = 3;
  const auto among = [](std::chrono::seconds timeout, const auto& key_of_rank, const auto& f) {
    in_process_store store;
    std::vector<std::string> failures(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        failures[std::size_t(r)] = error_of<communication_error>([&] {
          const auto protection = std::make_shared<detail::tls_protection>(key_of(key_of_rank(r)));
          tcp_communicator c(store, r, size, {.timeout = timeout, .protection = protection});
          f(c);
        });
      });
    for (auto& t : threads) t.join();
    return failures;
  };
  const auto same = [](int) -> unsigned char { return 7; };
  const auto failures = among(60s, same, [&](tcp_communicator& c) {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<std::byte>> out, in;
      for (int r = 0; r < size; ++r)
        for (std::size_t i = 0; i < std::size(sizes); ++i) {
          out.push_back(random_bytes(sizes[i], unsigned(c.rank() * 1000 + r * 100 + int(i))));
          in.emplace_back(sizes[i]);
        }
      for (int r = 0; r < size; ++r)
        for (std::size_t i = 0; i < std::size(sizes) && r != c.rank(); ++i) {
          const std::size_t at = std::size_t(r) * std::size(sizes) + i;
          c.receive(in[at].data(), sizes[i], r);
          c.send(out[at].data(), sizes[i], r);
        }
      c.wait("messages");
      for (int r = 0; r < size; ++r)
        for (std::size_t i = 0; i < std::size(sizes) && r != c.rank(); ++i)
          CHECK(in[std::size_t(r) * std::size(sizes) + i] ==
                random_bytes(sizes[i], unsigned(r * 1000 + c.rank() * 100 + int(i))));
    }
  });
  for (const std::string& why : failures) CHECK(why == "no error");

  const auto one_differs = [](int r) -> unsigned char { return r == 2 ? 8 : 7; };
  const auto refused = among(3s, one_differs, [](tcp_communicator& c) {
    std::byte nothing{};
    for (int r = 0; r < size; ++r)
      if (r != c.rank()) c.send(&nothing, 1, r), c.receive(&nothing, 1, r);
    c.wait("messages");
  });
  CHECK(contains(refused[0] + refused[1], "process 2"));
  for (const std::string& why : refused) CHECK(why != "no error");
}

TEST_CASE("a process that has read the tokens on the network but does not have the key is refused, and the members connect") {
  in_process_store store;
  late_store of_second(store);
  std::string failures[2];
  const auto exchange = [&](int rank) {
    return std::thread([&, rank] {
      key_value_store& own = rank == 0 ? static_cast<key_value_store&>(store) : of_second;
      failures[rank] = error_of<communication_error>([&] {
        tcp_communicator c(own, rank, 2, {.timeout = 20s, .protection = std::make_shared<detail::tls_protection>(key_of(7))});
        std::byte out{static_cast<unsigned char>(rank)}, in{7};
        c.receive(&in, 1, 1 - rank);
        c.send(&out, 1, 1 - rank);
        c.wait("a byte");
        CHECK(in == std::byte(1 - rank));
      });
    });
  };
  std::thread members[] = {exchange(0), exchange(1)};
  const auto at = wire::decode<detail::tcp_address>(store.get("tcp 0", 5s));
  std::vector<io::file_descriptor> silent;
  for (int i = 0; i < 30; ++i) {
    auto socket = detail::dial({at.host, std::uint16_t(at.port)}, steady_clock::now() + 5s).first;
    const std::string hello = wire::encode(detail::tcp_hello{at.token, 1, 2}), noise(300, char(i));
    CHECK(::send(socket.number(), hello.data(), hello.size(), MSG_NOSIGNAL) == ::ssize_t(hello.size()));
    if (i % 3 == 0) (void)!::send(socket.number(), noise.data(), noise.size(), MSG_NOSIGNAL);
    if (i % 3 != 1) {
      silent.push_back(std::move(socket));
      continue;
    }
    char answer[detail::tcp_hello::encoded_bytes] = {};
    const bool answers = detail::wait_for_socket(socket.number(), POLLIN, steady_clock::now() + 5s);
    CHECK((answers && ::recv(socket.number(), answer, sizeof answer, 0) == ::ssize_t(sizeof answer)));
    tls_stream other_key(std::move(socket), detail::tls_identity(key_of(8)), false);
    stream_progress p;
    while ((p = other_key.greet()).waits_for != 0)
      if (!detail::wait_for_socket(other_key.socket(), p.waits_for, steady_clock::now() + 5s)) break;
    CHECK((p.is_broken || p.is_closed));
  }
  of_second.opens.count_down();
  for (std::thread& m : members) m.join();
  for (const std::string& why : failures) CHECK(why == "no error");
}

TEST_CASE("members connect while strangers open bursts of connections that displace others in the middle of a handshake") {
  constexpr int size = 4;
  for (int round = 0; round < 6; ++round) {
    in_process_store store;
    std::vector<std::string> failures(size);
    std::vector<std::thread> members;
    std::atomic<int> at_work = size;
    for (int r = 0; r < size; ++r)
      members.emplace_back([&, r] {
        failures[std::size_t(r)] = error_of<communication_error>([&] {
          tcp_communicator c(store, r, size, {.timeout = 60s, .protection = std::make_shared<detail::tls_protection>(key_of(7))});
          std::byte out{}, in[size]{};
          for (int other = 0; other < size; ++other)
            if (other != r) c.receive(&in[other], 1, other), c.send(&out, 1, other);
          c.wait("a byte");
        });
        --at_work;
      });
    std::vector<std::thread> bursts;
    for (int r = 0; r < size - 1; ++r)
      bursts.emplace_back([&, r] {
        const auto at = wire::decode<detail::tcp_address>(store.get(detail::text_of({"tcp ", r}), 5s));
        const detail::socket_address there =
            detail::addresses_of({at.host, std::uint16_t(at.port)}, AI_NUMERICHOST, steady_clock::now() + 5s).front();
        std::vector<io::file_descriptor> open;
        for (int i = 0; i < 300 && at_work > 0; ++i) {
          open.push_back(detail::tcp_socket(there));
          (void)::connect(open.back().number(), there.get(), there.size);
        }
      });
    for (std::thread& b : bursts) b.join();
    for (std::thread& m : members) m.join();
    for (const std::string& why : failures) CHECK(why == "no error");
  }
}
