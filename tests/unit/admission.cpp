// needs: openssl protozero
// Which processes may take part in a training: secrets, users, addresses.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <strata/control/coordinator.hpp>
#include <strata/control/coordinator_client.hpp>
#include <string>
#include <thread>

#include "error_of.hpp"
#include "free_endpoint.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::control;
using strata::test::contains;
using strata::test::error_of;
using namespace std::chrono_literals;

namespace {
const std::string digits = "00112233445566778899aabbccddeeff";

detail::socket_address address(const std::string& host, int port = 2222) {
  return detail::addresses_of({host, std::uint16_t(port)}, AI_NUMERICHOST, std::chrono::steady_clock::now() + 1s).front();
}
control_options with_secret(const std::string& text) {
  control_options options;
  options.secret = training_secret(text);
  options.heartbeat.interval = 200ms;
  return options;
}
/// An address of this machine that is not loopback, and a port.
std::optional<endpoint> own_address() {
  ::ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  std::optional<endpoint> found;
  for (const ::ifaddrs* i = first; i && !found; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const ::sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
    if (detail::admission::is_loopback(text)) continue;
    const io::file_descriptor s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    detail::socket_address at = address(text, 0);
    if (::bind(s.number(), at.get(), at.size) == 0 && ::getsockname(s.number(), at.get(), &at.size) == 0)
      found = endpoint{text, ntohs(at.v4().sin_port)};
  }
  ::freeifaddrs(first);
  return found;
}
struct variable {
  const char* name;
  variable(const char* name, const std::string& value) : name(name) { ::setenv(name, value.c_str(), 1); }
  ~variable() { ::unsetenv(name); }
};
}  // namespace

TEST_CASE("a secret has 128 bits in hexadecimal digits, and no error quotes it") {
  CHECK(training_secret(digits + "\n").digits() == digits);
  for (const std::string& bad : {std::string("0011"), digits + " and more", std::string(31, 'a'), std::string(), "x" + digits}) {
    const std::string why = error_of([&] { training_secret(bad, "STRATA_SECRET"); });
    CHECK(why == "STRATA_SECRET is not 32 or more hexadecimal digits: make one with openssl rand -hex 16");
  }
}

TEST_CASE("the secret comes from the environment, or from a file that it names") {
  CHECK_FALSE(detail::secret_of_environment());
  {
    const variable set("STRATA_SECRET", digits);
    CHECK(detail::secret_of_environment()->digits() == digits);
  }
  const test::scratch_folder folder("admission");
  const std::string path = folder.path / "secret";
  std::ofstream(path) << digits << '\n';
  {
    const variable set("STRATA_SECRET_FILE", path);
    for (const unsigned others : {0040u, 0004u, 0020u}) {
      ::chmod(path.c_str(), 0600 | others);
      CHECK(error_of([] { detail::secret_of_environment(); }) ==
            "STRATA_SECRET_FILE: " + path + " can be accessed by other users, which is not allowed for a secret: chmod 600 " +
                path + ", or for a Secret of Kubernetes defaultMode: 0400");
    }
    ::chmod(path.c_str(), 0600);
    CHECK(detail::secret_of_environment()->digits() == digits);
    const variable same("STRATA_SECRET", digits);
    CHECK(detail::secret_of_environment()->digits() == digits);
    const variable another("STRATA_SECRET", std::string(32, 'a'));
    CHECK(error_of([] { detail::secret_of_environment(); }) ==
          "STRATA_SECRET differs from the secret in the file of STRATA_SECRET_FILE: unset one of them");
  }
  {
    REQUIRE(::mkfifo((path + ".pipe").c_str(), 0600) == 0);
    const variable set("STRATA_SECRET_FILE", path + ".pipe");
    CHECK(contains(error_of([] { detail::secret_of_environment(); }), "secret.pipe: not a regular file"));
  }
  const variable set("STRATA_SECRET_FILE", path + ".not");
  CHECK(contains(error_of([] { detail::secret_of_environment(); }), "STRATA_SECRET_FILE: cannot read " + path + ".not: "));
}

TEST_CASE("who proves what") {
  using detail::protection;
  const auto own = [] { return std::optional(true); };
  const auto foreign = [] { return std::optional(false); };
  const auto unknown = [] { return std::optional<bool>(); };
  const detail::socket_address here = address("127.0.0.1"), here_too = address("::1"), there = address("10.1.2.3");
  const detail::admission none{control_options{}}, open{control_options{.unprotected = true}}, secret{with_secret(digits)};
  for (const auto& local : {here, here_too, address("::ffff:127.0.0.1")}) {
    CHECK(none.of(local, own) == protection::none);
    CHECK(none.of(local, foreign) == protection::refused);
    CHECK(none.of(local, unknown) == protection::refused);
    CHECK(secret.of(local, own) == protection::tls);  // a connection through ssh -L belongs to a process of this user
    CHECK(secret.of(local, foreign) == protection::tls);
    CHECK(open.of(local, foreign) == protection::none);
  }
  CHECK(none.of(there, own) == protection::refused);
  CHECK(secret.of(there, own) == protection::tls);
  CHECK(open.of(there, foreign) == protection::none);
}

TEST_CASE("the kernel tells whose connection it is") {
  const io::file_descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  detail::socket_address at = address("127.0.0.1", 0);
  REQUIRE(::bind(listener.number(), at.get(), at.size) == 0);
  CHECK_FALSE(detail::listener_is_of_same_user(address("127.0.0.1", 1)));
  REQUIRE(::listen(listener.number(), 1) == 0);
  REQUIRE(::getsockname(listener.number(), at.get(), &at.size) == 0);
  CHECK(detail::listener_is_of_same_user(at) == true);
  const io::file_descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(client.number(), at.get(), at.size) == 0);
  const io::file_descriptor accepted(::accept(listener.number(), nullptr, nullptr));
  CHECK(detail::is_from_same_user(accepted.number()) == true);
  if (::geteuid() != 0) return;
  // A socket belongs to the user under whom the process makes it.
  REQUIRE(::seteuid(65534) == 0);
  const io::file_descriptor of_nobody(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(::connect(of_nobody.number(), at.get(), at.size) == 0);
  const io::file_descriptor from_nobody(::accept(listener.number(), nullptr, nullptr));
  CHECK(detail::is_from_same_user(from_nobody.number()) == false);
  // What was sent before the end can still be read, but the kernel no longer has the sender's identity.
  REQUIRE(::seteuid(65534) == 0);
  io::file_descriptor gone(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(::connect(gone.number(), at.get(), at.size) == 0);
  REQUIRE(::send(gone.number(), "PRI", 3, 0) == 3);
  gone = {};
  const io::file_descriptor from_gone(::accept(listener.number(), nullptr, nullptr));
  CHECK(detail::is_from_same_user(from_gone.number()) == std::nullopt);
}

TEST_CASE("on one machine: where there is a secret, a process of the same user needs it") {
  const endpoint where = test::free_endpoint();
  const coordinator server(where, "run", with_secret(digits));
  coordinator_client member(where, "run", with_secret(digits));
  member.set("key", "value");
  CHECK(member.get("key", 5s) == "value");
  coordinator_client none(where, "run", control_options{});
  CHECK(contains(error_of([&] { none.get("key", 300ms); }),
                 to_string(where) + " does not admit this process: does it have the secret of the training?"));
}

TEST_CASE("between machines: the same secret trains, another one or none is told what is wrong, and silence costs nothing") {
  const std::optional<endpoint> where = own_address();
  if (!where) return;
  CHECK(contains(error_of([&] { coordinator(*where, "run"); }), "give all processes the same secret in STRATA_SECRET"));
  const coordinator server(*where, "run", with_secret(digits));
  coordinator_client member(*where, "run", with_secret(digits));
  member.set("key", "value");
  CHECK(member.get("key", 5s) == "value");
  const std::string at = "the coordinator at " + to_string(*where) + " did not store 'key' within 30000 ms: ";
  coordinator_client other(*where, "run", with_secret(std::string(32, 'a')));
  CHECK(contains(error_of([&] { other.get("key", 3s); }), to_string(*where) + " has another secret, or none: "));
  coordinator_client none(*where, "run", control_options{.unprotected = true});
  CHECK(contains(error_of([&] { none.get("key", 300ms); }), "within 300 ms: "));
  std::vector<io::file_descriptor> silent;
  for (int i = 0; i < 600; ++i) {
    const detail::socket_address to = address(where->host, where->port);
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(silent.back().number(), to.get(), to.size) == 0);
  }
  coordinator_client late(*where, "run", with_secret(digits));
  late.set("key", "another");
  CHECK(member.get("key", 5s) == "another");
}

TEST_CASE("addresses are grouped by subscriber") {
  CHECK(detail::address_without_port(address("10.0.0.1")) == "10.0.0.1");
  CHECK(detail::address_without_port(address("::ffff:10.0.0.1")) == "10.0.0.1");
  CHECK(detail::address_without_port(address("2001:db8:1:2:3::4")) == "2001:db8:1:2::");
}

TEST_CASE("a host that has no address is named, and an address needs no name server") {
  const auto soon = std::chrono::steady_clock::now() + 20s;
  CHECK(detail::addresses_of({"127.0.0.1", 1}, 0, soon).size() == 1);
  CHECK(contains(error_of<communication_error>([&] { detail::addresses_of({"no.such.host.invalid", 1}, 0, soon); }),
                 "no.such.host.invalid"));
  CHECK(
      contains(error_of<communication_error>([&] { detail::dial({"127.0.0.1", 1}, soon); }), "127.0.0.1:1: Connection refused"));
}
