// needs: openssl protozero
// The server of messages: answers of all sizes, calls that are given up, and connections that do not behave.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <strata/control/message_server.hpp>
#include <strata/control/server_connection.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "free_endpoint.hpp"
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;
using detail::frame_kind, detail::message_link, detail::status_code;
using std::chrono::steady_clock;
using strata::test::contains;
using strata::test::error_of;
using strata::test::free_endpoint;

namespace {
/// Returns the elements of a request, or keeps it without an answer.
struct echo final : detail::message_service {
  std::atomic<int> kept = 0, forgotten = 0, ended = 0;
  std::mutex mutex;
  std::vector<std::shared_ptr<detail::served_call>> waiting;

  void handle(const std::shared_ptr<detail::served_call>& c, wire::envelope& received) override {
    if (c->method == "/join") c->is_of_member([this] { ++ended; });
    if (c->method == "/keep") {
      const std::lock_guard lock(mutex);
      waiting.push_back(c);
      ++kept;
      return;
    }
    const auto copy = std::make_shared<std::vector<std::byte>>(received.left());
    received.read(copy->data(), copy->size());
    c->answer({{}, {wire::shared_array(copy, copy->data(), copy->size())}});
  }
  void forget(const detail::served_call&) override { ++forgotten; }
};
struct served {
  endpoint where = free_endpoint();
  echo service;
  detail::message_server server;

  explicit served(detail::server_limits limits = {}) : server(where, "the echo", service, control_options{}, limits) {}
  std::shared_ptr<detail::message_connection> connect() const {
    return detail::server_connection(where, {}, 64 << 20).open(steady_clock::now() + 20s).open;
  }
};
wire::sealed_message request(const std::vector<std::byte>& elements) {
  return wire::sealed(wire::sender{}, control::empty_message{}, {wire::shared_array({}, elements.data(), elements.size())});
}
detail::reply call(const std::shared_ptr<detail::message_connection>& c, const char* method,
                   const std::vector<std::byte>& elements = {}) {
  return detail::call_and_wait(c, method, request(elements), steady_clock::now() + 60s);
}
std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 r(seed);
  std::vector<std::byte> all(count);
  for (std::byte& b : all) b = std::byte(r());
  return all;
}
bool is_equal(std::string_view text, const std::vector<std::byte>& bytes) {
  return text.size() == bytes.size() && (bytes.empty() || std::memcmp(text.data(), bytes.data(), bytes.size()) == 0);
}
void wait_for(const std::atomic<int>& count, int value) {
  for (const auto until = steady_clock::now() + 20s; count < value && steady_clock::now() < until;) std::this_thread::yield();
  CHECK(count == value);
}
/// One end of a connection whose frames the test sends and receives itself.
struct raw {
  message_link link;
  explicit raw(const endpoint& where)
      : link(std::make_unique<detail::plain_stream>(detail::dial(where, steady_clock::now() + 5s).first), false, 1 << 20) {
    link.flush();
  }
  void begin(std::uint32_t number, std::string_view method) {
    link.send({.call = number, .kind = frame_kind::request}, method, request({}));
  }
  std::optional<detail::received_frame> next() {
    for (const auto until = steady_clock::now() + 20s; !link.has_ended();) {
      link.flush();
      if (auto f = link.receive()) return f;
      if (!detail::wait_for_socket(link.socket(), link.events(), until)) break;
    }
    return {};
  }
};
}  // namespace

TEST_CASE("messages of all sizes, many at a time and from several threads, are answered with their bytes") {
  served s({.largest_message = 32 << 20, .calls = 1000});
  const auto connection = s.connect();
  REQUIRE(call(connection, "/join").status.ok());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::vector<std::byte>> sent;
      for (const std::size_t size : {0ul, 1ul, 4'079ul, 4'080ul, 4'081ul, 70'000ul, 9'000'000ul})
        sent.push_back(random_bytes(size, t));
      for (unsigned i = 0; i < 200; ++i) sent.push_back(random_bytes(i, i));
      detail::calls_of_thread calls;
      for (std::size_t i = 0; i < sent.size(); ++i)
        calls.begin(connection, "/echo", request(sent[i]), steady_clock::now() + 60s, i);
      while (!calls.empty()) {
        const detail::ended_call c = *calls.next();
        CHECK(c.end.status.ok());
        CHECK(is_equal(c.end.frame.content(), sent[c.tag]));
      }
    });
  for (auto& t : threads) t.join();
}

TEST_CASE("a caller that reads late gets all answers") {
  served s({.calls = 1000});
  raw caller(s.where);
  for (std::uint32_t i = 0; i < 800; ++i) caller.begin(i, "/echo");
  std::this_thread::sleep_for(300ms);
  for (std::uint32_t i = 0; i < 800; ++i) {
    const auto answer = caller.next();
    REQUIRE(answer);
    CHECK(answer->head.call == i);
  }
}

TEST_CASE("a message that is too large is refused, and the connection goes on; a member may send more") {
  served s({.largest_message = 200'000});
  const auto connection = s.connect();
  const std::vector<std::byte> large(100'000), larger(300'000);
  CHECK(contains(call(connection, "/echo", large).status.text, "more than a process that is no member may send"));
  REQUIRE(call(connection, "/join").status.ok());
  CHECK(is_equal(call(connection, "/echo", large).frame.content(), large));
  CHECK(contains(call(connection, "/echo", larger).status.text, "more than a process that is a member may send"));
  CHECK(call(connection, "/echo").status.ok());
}

TEST_CASE("calls that are given up, and those of a connection that ends, are forgotten; the others get no answer for them") {
  served s;
  {
    const auto connection = s.connect();
    REQUIRE(call(connection, "/join").status.ok());
    detail::calls_of_thread calls;
    calls.begin(connection, "/keep", request({}), steady_clock::now() + 200ms, 7);
    const auto late = calls.next();
    CHECK(late->tag == 7);
    CHECK(late->end.status.code == status_code::deadline_exceeded);
    wait_for(s.service.forgotten, 1);
    for (int i = 0; i < 3; ++i) calls.begin(connection, "/keep", request({}), steady_clock::now() + 60s);
    wait_for(s.service.kept, 4);
    std::thread other([&] { calls.cancel(); });
    CHECK(calls.next()->end.status.code == status_code::cancelled);
    other.join();
    wait_for(s.service.forgotten, 2);
    CHECK(s.service.ended == 0);
  }
  wait_for(s.service.forgotten, 4);
  wait_for(s.service.ended, 1);
  for (const auto& c : s.service.waiting) c->answer(control::empty_message{});  // has no effect
}

TEST_CASE("who breaks the protocol, makes too many calls or does not answer pings is dropped, and the server goes on") {
  served s({.calls = 10, .pings = {.after = 300ms, .timeout = 300ms}});
  raw talks(s.where), floods(s.where), silent(s.where), answers(s.where);
  talks.link.send({.call = 1, .kind = frame_kind::answer}, {}, {});
  for (std::uint32_t i = 0; i < 20; ++i) floods.begin(i, "/keep");
  while (talks.next()) {
  }
  while (floods.next()) {
  }
  CHECK(talks.link.has_ended());
  CHECK(floods.link.has_ended());
  int pings = 0;
  for (const auto until = steady_clock::now() + 1500ms; steady_clock::now() < until;) {
    const auto f = answers.link.receive();
    if (f && f->head.kind == frame_kind::ping) ++pings, answers.link.send(frame_kind::pong);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(pings >= 2);
  answers.begin(1, "/echo");
  CHECK(answers.next());
  while (silent.next()) {
  }
  CHECK(silent.link.has_ended());
}

TEST_CASE("a server of another protocol is refused by one sentence") {
  const io::file_descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  detail::socket_address at = detail::addresses_of({"127.0.0.1", 0}, AI_NUMERICHOST, steady_clock::now() + 1s).front();
  REQUIRE(::bind(listener.number(), at.get(), at.size) == 0);
  REQUIRE(::listen(listener.number(), 4) == 0);
  REQUIRE(::getsockname(listener.number(), at.get(), &at.size) == 0);
  std::thread other([&] {
    const io::file_descriptor accepted(::accept(listener.number(), nullptr, nullptr));
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);  // of HTTP/2
    CHECK(::send(accepted.number(), settings.data(), settings.size(), MSG_NOSIGNAL) == 9);
    char byte = 0;
    while (::recv(accepted.number(), &byte, 1, 0) > 0) {
    }
  });
  const endpoint where{"127.0.0.1", std::uint16_t(at.port())};
  const auto way = detail::server_connection(where, {}, 1 << 16).open(steady_clock::now() + 5s);
  CHECK(!way.open);
  CHECK(way.why.text ==
        to_string(where) + " does not speak the protocol of this version of strata: all processes need the same version");
  other.join();
}
