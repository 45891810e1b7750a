// needs: protozero
// Messages over TCP between threads of one process: of all sizes at once, with connections of strangers, and how waiting ends.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <random>
#include <strata/communicators/tcp.hpp>
#include <strata/io/file_descriptor.hpp>
#include <string>
#include <thread>
#include <vector>

#include "count_allocations.hpp"
#include "error_of.hpp"
#include "stopped_time.hpp"
using namespace strata;
using namespace strata::core;
using io::file_descriptor;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {
/// Calls f(communicator) in a thread for each rank.
template <class F>
void among(int size, tcp_options options, F&& f) {
  in_process_store store;
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      failures[std::size_t(r)] = error_of<communication_error>([&] {
        tcp_communicator c(store, r, size, options);
        f(c);
      });
    });
  for (auto& t : threads) t.join();
  for (const std::string& why : failures) CHECK(why == "no error");
}

long allocations_so_far() {
#ifdef STRATA_TEST_NEW_IS_TAKEN
  return 0;
#else
  return test::allocations;
#endif
}

struct meeting_point {
  detail::tcp_address at;
  explicit meeting_point(key_value_store& store) : at(wire::decode<detail::tcp_address>(store.get("tcp 0", 5s))) {}
};

/// A connection; nothing if it is refused.
io::file_descriptor connected(const meeting_point& at) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::uint16_t(at.at.port));
  ::inet_pton(AF_INET, at.at.host.c_str(), &to.sin_addr);
  io::file_descriptor s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(s.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? std::move(s) : io::file_descriptor();
}
/// The encoded address of a process that claims to listen at `port`.
std::string address_of(const std::string& host, int port) { return wire::encode(detail::tcp_address{host, port, 77}); }
}  // namespace

TEST_CASE("messages of all sizes, in both directions at once, arrive in order and allocate nothing once memory has grown") {
  constexpr std::size_t sizes[] = {0, 1, 7, 70'000, 6'000'000, 3, 0, 200'000};  // more than sockets hold
  constexpr std::size_t all = 6'270'011;
  for (const int size : {2, 3}) {
    std::barrier all_are_here(size);
    long allocations = 0;  // of all threads
    among(size, {.timeout = 20s}, [&](tcp_communicator& c) {
      auto out = c.allocate(all), in = c.allocate(all * std::size_t(c.size()));
      for (int round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < all; ++i) out.data()[i] = std::byte(i * 7 + std::size_t(c.rank() + round));
        all_are_here.arrive_and_wait();
        if (round == 2 && c.rank() == 0) allocations = allocations_so_far();
        for (int r = 0; r < c.size(); ++r) {
          std::size_t at = 0;
          for (const std::size_t bytes : sizes) {
            if (r == c.rank()) break;
            c.receive(in, std::size_t(r) * all + at, bytes, r);
            c.send(out, at, bytes, r);
            at += bytes;
          }
        }
        c.wait("a round");
        for (int r = 0; r < c.size(); ++r)
          for (std::size_t i = 0; r != c.rank() && i < all; ++i)
            if (in.data()[std::size_t(r) * all + i] != std::byte(i * 7 + std::size_t(r + round))) {
              FAIL_CHECK("wrong byte");
              break;
            }
      }
      all_are_here.arrive_and_wait();
      if (c.rank() == 0) allocations = allocations_so_far() - allocations;
      all_are_here.arrive_and_wait();
    });
    CHECK(allocations == 0);
  }
}

TEST_CASE("a wait for what has been begun before a mark does not wait for the rest") {
  std::atomic<bool> first_is_there{false};
  among(2, {.timeout = 10s}, [&](tcp_communicator& c) {
    auto memory = c.allocate(20);
    if (c.rank() == 0) {
      c.send(memory, 0, 10, 1);
      c.wait("the first");
      while (!first_is_there) std::this_thread::sleep_for(1ms);
      c.send(memory, 0, 10, 1);
      c.wait("the second");
    } else {
      c.receive(memory, 0, 10, 0);
      const auto mark = c.begun();
      c.receive(memory, 10, 10, 0);
      c.wait_received("the first", mark);
      first_is_there = true;
      c.wait("the second");
    }
  });
}

TEST_CASE("what was sent arrives though the sender has ended") {
  for (int i = 0; i < 20; ++i)
    among(2, {.timeout = 10s}, [](tcp_communicator& c) {
      auto memory = c.allocate(300'000);
      if (c.rank() == 0) {
        std::memset(memory.data(), 7, 300'000);
        c.send(memory, 0, 300'000, 1);
        CHECK(error_of<communication_error>([&] { c.wait("the last"); }) == "no error");
      } else {
        c.receive(memory, 0, 300'000, 0);
        CHECK(error_of<communication_error>([&] { c.wait("the last"); }) == "no error");
        CHECK(memory.data()[299'999] == std::byte(7));
      }
    });
}

TEST_CASE("the time-out is for a wait in which no byte comes; after it every wait ends at once, with the same words") {
  std::atomic<bool> done{false};
  among(2, {.timeout = 6s}, [&](tcp_communicator& c) {
    auto memory = c.allocate(100);
    if (c.rank() == 1) {
      for (int i = 0; i < 4; ++i) {
        std::this_thread::sleep_for(2500ms);
        c.send(memory, 0, 10, 0);
        c.wait("now and then");
      }
      while (!done) std::this_thread::sleep_for(1ms);
      return;
    }
    for (int i = 0; i < 4; ++i) c.receive(memory, 0, 10, 1);
    CHECK(error_of<communication_error>([&] { c.wait("now and then"); }) == "no error");
    c.receive(memory, 0, 100, 1);
    const std::string why = error_of<communication_error>([&] { c.wait("gradients"); });
    CHECK(why == "gradients: process 1, for which process 0 waits over TCP, did not answer within 6000 ms");
    const auto began = steady_clock::now();
    CHECK(error_of<communication_error>([&] { c.wait("metrics"); }) == why);
    CHECK(error_of<communication_error>([&] { c.send(memory, 0, 100, 1); }) == why);
    CHECK(steady_clock::now() - began < 1s);
    done = true;
  });
}

TEST_CASE("one that sends a message byte by byte, each in time, does not hold the others for ever") {
  in_process_store store;
  std::string failure;
  std::thread listener([&] {
    tcp_communicator c(store, 0, 2, {.timeout = 2s});
    auto memory = c.allocate(1000);
    c.receive(memory, 0, 1000, 1);
    failure = error_of<communication_error>([&] { c.wait("gradients"); });
  });
  const meeting_point at(store);
  store.set("tcp 1", address_of("127.0.0.1", 9));
  {
    const io::file_descriptor worker = connected(at);
    const std::string hello = wire::encode(detail::tcp_hello{at.at.token, 1, 2});
    REQUIRE(::send(worker.number(), hello.data(), hello.size(), MSG_NOSIGNAL) == ssize_t(hello.size()));
    const std::uint64_t bytes = 1000;
    (void)!::send(worker.number(), &bytes, sizeof bytes, MSG_NOSIGNAL);
    for (int i = 0; i < 900 && ::send(worker.number(), "!", 1, MSG_NOSIGNAL) == 1; ++i) std::this_thread::sleep_for(10ms);
  }  // closes the connection, if the other side has not done so
  listener.join();
  CHECK(contains(failure, "gradients: process 1, for which process 0 waits over TCP, "));
  CHECK((contains(failure, "transferred only ") ||
         contains(failure, "did not answer ")));  // a busy machine may send nothing for 2 s
  CHECK(contains(failure, "within 2000 ms"));
}

TEST_CASE("no time passes for a wait while another process does what takes long") {
  test::check_stopped_time<tcp_communicator>(300ms, "did not answer within 300 ms");
}

TEST_CASE("one that ends, and one that sends something else") {
  among(2, {.timeout = 10s}, [](tcp_communicator& c) {
    if (c.rank() == 1) return;
    auto memory = c.allocate(100);
    c.receive(memory, 0, 100, 1);
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) ==
          "gradients: process 1, for which process 0 waits over TCP, has closed the connection");
  });
  among(2, {.timeout = 10s}, [](tcp_communicator& c) {
    auto memory = c.allocate(100);
    if (c.rank() == 1) {
      c.send(memory, 0, 50, 0);
      c.receive(memory, 0, 1, 0);
      CHECK(error_of<communication_error>([&] { c.wait("an answer"); }) != "no error");
      return;
    }
    c.receive(memory, 0, 100, 1);
    CHECK(contains(error_of<communication_error>([&] { c.wait("gradients"); }), "sent 50 bytes instead of 100"));
  });
}

TEST_CASE("another thread ends a wait, with its reason") {
  among(2, {.timeout = 20s}, [](tcp_communicator& c) {
    auto memory = c.allocate(100);
    const auto began = steady_clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      c.interrupt("worker 7 is dead");
    });
    c.receive(memory, 0, 100, 1 - c.rank());
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
    other.join();
    CHECK(steady_clock::now() - began < 15s);  // not 20
    CHECK(error_of<communication_error>([&] { c.wait("gradients"); }) != "no error");
  });
}

TEST_CASE("a name, an IPv6 address, a host that is none or is elsewhere, and one that never comes") {
  for (const char* host : {"localhost", "::1"}) {
    in_process_store store;
    const std::string why =
        error_of<communication_error>([&] { tcp_communicator(store, 0, 2, {.host = host, .timeout = 200ms}); });
    if (contains(why, "cannot listen")) continue;  // this machine has no IPv6
    CAPTURE(why);
    CHECK(contains(why, "process 1 published no address within 200 ms"));
    among(2, {.host = host, .timeout = 10s}, [](tcp_communicator& c) {
      auto memory = c.allocate(2);
      c.receive(memory, 1, 1, 1 - c.rank());
      c.send(memory, 0, 1, 1 - c.rank());
      CHECK(error_of<communication_error>([&] { c.wait("a byte"); }) == "no error");
    });
  }
  in_process_store store;
  const auto first = [&](const char* host) {
    return error_of<communication_error>([&] { tcp_communicator(store, 0, 2, {.host = host, .timeout = 300ms}); });
  };
  const auto began = steady_clock::now();
  CHECK(contains(first("no.such.host.invalid"), "'no.such.host.invalid' is not an address: "));
  CHECK(
      contains(first("192.0.2.1"), "process 0 of 2 (192.0.2.1) could not connect to the others: cannot listen at '192.0.2.1': "));
  CHECK(contains(first("127.0.0.1"), "process 1 published no address within 300 ms"));
  store.set("tcp 1", "nowhere at all");
  CHECK(contains(first("127.0.0.1"), "process 1 published a malformed TCP address: "));
  store.set("tcp 1", address_of(std::string(60'000, '1'), 9));
  CHECK(
      contains(first("127.0.0.1"), "process 1 published a malformed TCP address: field 1 holds 60000 bytes; the limit is 1024"));
  store.set("tcp 1", address_of("127.0.0.1", 65536));
  CHECK(first("127.0.0.1").ends_with("port 65536 in its address"));
  store.set("tcp 1", address_of("127.0.0.1", 9));
  CHECK(contains(first("127.0.0.1"), "process 1 did not connect to 127.0.0.1:"));
  // Its address is in the store, but the process has ended.
  CHECK(contains(error_of<communication_error>([&] { tcp_communicator(store, 1, 2, {.timeout = 300ms}); }),
                 "process 0 at 127.0.0.1:"));
  CHECK(steady_clock::now() - began < 60s);
}

TEST_CASE("strangers get nowhere while processes connect, and are refused afterwards") {
  in_process_store store;
  std::string failure = "no error";
  std::thread listener([&] {
    failure = error_of<communication_error>([&] {
      tcp_communicator c(store, 0, 2, {.timeout = 20s});
      auto memory = c.allocate(2);
      memory.data()[0] = std::byte(3);
      c.send(memory, 0, 1, 1);
      c.receive(memory, 1, 1, 1);
      c.wait("a byte");
      CHECK(memory.data()[1] == std::byte(4));
    });
  });
  const meeting_point at(store);
  const std::uint64_t token = at.at.token;
  std::vector<io::file_descriptor> strangers;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    io::file_descriptor s = connected(at);
    CHECK(bool(s));
    if (!s) break;
    const detail::tcp_hello hellos[] = {{token + 1, 1, 2},       {0, 1, 2},    {token, 0, 2}, {token, 2, 2},
                                        {token, 0xFFFF'FFFF, 2}, {token, 1, 3}};
    const std::string hello = wire::encode(hellos[random() % 6]);
    CHECK(hello.size() == detail::tcp_hello::encoded_bytes);
    std::vector<std::uint8_t> noise(5000);
    for (std::uint8_t& n : noise) n = std::uint8_t(random());
    switch (random() % 4) {
      case 0:
        break;  // sends nothing
      case 1:
        (void)!::send(s.number(), hello.data(), hello.size(), MSG_NOSIGNAL);
        break;
      case 2:
        (void)!::send(s.number(), hello.data(), random() % hello.size(), MSG_NOSIGNAL);
        break;
      case 3:
        (void)!::send(s.number(), noise.data(), noise.size(), MSG_NOSIGNAL);
        break;
    }
    if (random() % 2) strangers.push_back(std::move(s));  // and keeps the connection open
  }
  {
    tcp_communicator c(store, 1, 2, {.timeout = 20s});
    auto memory = c.allocate(2);
    memory.data()[0] = std::byte(4);
    c.send(memory, 0, 1, 0);
    c.receive(memory, 1, 1, 0);
    c.wait("a byte");
    CHECK(memory.data()[1] == std::byte(3));
    CHECK(!connected(at));
  }
  listener.join();
  CHECK(failure == "no error");
}

TEST_CASE("a connection that has shown the token is not displaced, however many strangers come while it proves its key") {
  struct slow_stream final : detail::byte_stream {
    io::file_descriptor owned;
    explicit slow_stream(io::file_descriptor s) : owned(std::move(s)) {}
    detail::stream_progress greet() override {  // ends when the other side sends a byte
      char proof;
      return ::recv(owned.number(), &proof, 1, MSG_DONTWAIT) == 1 ? detail::stream_progress{}
                                                                  : detail::stream_progress{.waits_for = POLLIN};
    }
    detail::stream_progress read(std::byte*, std::size_t) override { return {.waits_for = POLLIN}; }
    detail::stream_progress write(const std::byte* from, std::size_t bytes) override {
      return {.bytes = std::size_t(std::max<ssize_t>(0, ::send(owned.number(), from, bytes, MSG_NOSIGNAL)))};
    }
    const std::string& why_broken() const override {
      static const std::string nothing;
      return nothing;
    }
    int socket() const override { return owned.number(); }
  };
  struct slow_protection final : detail::socket_protection {
    std::unique_ptr<detail::byte_stream> protect(io::file_descriptor s, bool, int, int) const override {
      return std::make_unique<slow_stream>(std::move(s));
    }
  };
  in_process_store store;
  std::string failure;
  std::thread listener([&] {
    failure = error_of<communication_error>(
        [&] { tcp_communicator(store, 0, 2, {.timeout = 60s, .protection = std::make_shared<slow_protection>()}); });
  });
  const meeting_point at(store);
  store.set("tcp 1", address_of("127.0.0.1", 9));
  const io::file_descriptor worker = connected(at);
  const std::string hello = wire::encode(detail::tcp_hello{at.at.token, 1, 2});
  REQUIRE(::send(worker.number(), hello.data(), hello.size(), MSG_NOSIGNAL) == ssize_t(hello.size()));
  char answer[detail::tcp_hello::encoded_bytes];
  REQUIRE(::recv(worker.number(), answer, sizeof answer, MSG_WAITALL) == ssize_t(sizeof answer));
  const io::file_descriptor first = connected(at);
  std::vector<io::file_descriptor> others;
  const auto is_open = [](const io::file_descriptor& s) {
    char byte;
    return ::recv(s.number(), &byte, 1, MSG_DONTWAIT) < 0;
  };
  while (is_open(first) && others.size() < 900) {
    others.push_back(connected(at));
    std::this_thread::sleep_for(1ms);
  }
  CHECK(!is_open(first));
  CHECK(is_open(worker));
  CHECK(::send(worker.number(), "!", 1, MSG_NOSIGNAL) == 1);
  others.clear();
  listener.join();
  CHECK(failure == "no error");
}

TEST_CASE("one that listens in another's place is not believed") {
  in_process_store store;
  const io::file_descriptor impostor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  REQUIRE(::bind(impostor.number(), reinterpret_cast<sockaddr*>(&address), bytes) == 0);
  REQUIRE(::listen(impostor.number(), 100) == 0);
  REQUIRE(::getsockname(impostor.number(), reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
  store.set("tcp 0", address_of("127.0.0.1", ntohs(address.sin_port)));
  std::atomic<bool> done{false};
  std::thread answers([&] {
    while (!done) {
      pollfd on{impostor.number(), POLLIN, 0};
      if (::poll(&on, 1, 10) <= 0) continue;
      const io::file_descriptor s(::accept(impostor.number(), nullptr, nullptr));
      char hello[detail::tcp_hello::encoded_bytes] = {};
      if (::recv(s.number(), hello, sizeof hello, MSG_WAITALL) != ssize_t(sizeof hello)) continue;
      (void)!::send(s.number(), hello, sizeof hello, MSG_NOSIGNAL);  // it can only repeat what it received
    }
  });
  CHECK(contains(error_of<communication_error>([&] { tcp_communicator(store, 1, 2, {.timeout = 500ms}); }),
                 "did not answer in time"));
  done = true;
  answers.join();
}
