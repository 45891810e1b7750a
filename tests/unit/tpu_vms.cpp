// tpu_vms queries a metadata server, which the test simulates.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <strata/resolvers/tpu_vms.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "error_of.hpp"
using namespace strata;
using strata::test::error_of;

namespace {

/// Answers as the metadata server does, with the attributes that it has; `raw`: with these bytes in their place.
class metadata_server {
  io::file_descriptor listens_;
  std::map<std::string, std::string> attributes_;
  std::string raw_;
  std::atomic<bool> ends_{false};
  std::atomic<int> without_flavor_{0};
  std::thread thread_;

 public:
  std::string address;

  explicit metadata_server(std::map<std::string, std::string> attributes, std::string raw = {})
      : attributes_(std::move(attributes)), raw_(std::move(raw)) {
    auto [socket, where] = detail::bound_at("127.0.0.1", std::chrono::steady_clock::now() + std::chrono::seconds(10));
    REQUIRE(::listen(socket.number(), 8) == 0);
    listens_ = std::move(socket);
    address = "127.0.0.1:" + std::to_string(ntohs(reinterpret_cast<const ::sockaddr_in*>(where.get())->sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~metadata_server() {
    ends_ = true;
    thread_.join();
  }
  int without_flavor() const { return without_flavor_; }

 private:
  void serve() {
    while (!ends_) {
      if (!detail::wait_for_socket(listens_.number(), POLLIN, std::chrono::steady_clock::now() + std::chrono::milliseconds(20)))
        continue;
      const io::file_descriptor s(::accept(listens_.number(), nullptr, nullptr));
      std::string request;
      for (char piece[512]; request.find("\r\n\r\n") == request.npos;) {
        const ::ssize_t got = ::recv(s.number(), piece, sizeof piece, 0);
        if (got <= 0) break;
        request.append(piece, std::size_t(got));
      }
      without_flavor_ += request.find("\r\nMetadata-Flavor: Google\r\n") == request.npos;
      const std::string path = "GET /computeMetadata/v1/instance/attributes/";
      const std::string name =
          request.starts_with(path) ? request.substr(path.size(), request.find(' ', path.size()) - path.size()) : "";
      const auto found = attributes_.find(name);
      const std::string answer = !raw_.empty() ? raw_
                                 : found == attributes_.end()
                                     ? "HTTP/1.0 404 Not Found\r\nMetadata-Flavor: Google\r\n\r\nno such attribute"
                                     : "HTTP/1.0 200 OK\r\nMetadata-Flavor: Google\r\n\r\n" + found->second;
      if (answer == "silence") {
        while (!ends_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return;
      }
      std::string_view rest = answer;
      for (; rest.size() > answer.size() / 2 && rest.size() < 1000; rest.remove_prefix(1))  // in many pieces
        ::send(s.number(), rest.data(), 1, MSG_NOSIGNAL);
      while (!rest.empty()) {
        const ::ssize_t sent = ::send(s.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;
        rest.remove_prefix(std::size_t(sent));
      }
    }
  }
};

tpu_vms asking(const metadata_server& server) {
  tpu_vms resolver;
  resolver.environment = [where = server.address](const std::string& name) {
    return name == "GCE_METADATA_IP" ? std::optional(where) : std::nullopt;
  };
  return resolver;
}

const std::string three = "unknown:unknown:10.130.0.5,unknown:unknown:10.130.0.6,unknown:unknown:10.130.0.7";

}  // namespace

TEST_CASE("tpu_vms: the hosts of a slice, and which of them this is") {
  const metadata_server server({{"worker-network-endpoints", three}, {"agent-worker-number", "2\n"}});
  const cluster c = asking(server)();
  CHECK((c.rank() == 2 && c.size() == 3));
  CHECK(to_string(c.spec()) == "worker 10.130.0.5:8476 10.130.0.6:8476 10.130.0.7:8476");
  tpu_vms other = asking(server);
  other.port = 4000;
  CHECK(to_string(other().coordinator()) == "10.130.0.5:4000");
  CHECK(server.without_flavor() == 0);
  const std::string ports = "a:b:tpu-0:8470,a:b:tpu_1.local:8470\r\n";
  const metadata_server with_ports({{"worker-network-endpoints", ports}, {"agent-worker-number", "0"}});
  CHECK(to_string(asking(with_ports)().spec()) == "worker tpu-0:8476 tpu_1.local:8476");
}

TEST_CASE("tpu_vms: what the server cannot say is one error") {
  const auto mistake = [](std::map<std::string, std::string> attributes, const std::string& raw = {}) {
    const metadata_server server(std::move(attributes), raw);
    tpu_vms resolver = asking(server);
    resolver.timeout = raw == "silence" ? std::chrono::milliseconds(300) : std::chrono::seconds(10);
    std::string what = error_of([&] { resolver(); });
    if (const auto at = what.find(server.address); at != what.npos) what.replace(at, server.address.size(), "HERE");
    return what;
  };
  CHECK(mistake({}) ==
        "tpu_vms: the metadata server at HERE returns 'HTTP/1.0 404 Not Found' when asked for worker-network-endpoints");
  CHECK(mistake({{"worker-network-endpoints", three}, {"agent-worker-number", "3"}}) ==
        "tpu_vms: agent-worker-number is '3', but worker-network-endpoints lists 3 hosts");
  CHECK(mistake({{"worker-network-endpoints", three}, {"agent-worker-number", "first"}})
            .starts_with("tpu_vms: agent-worker-number"));
  CHECK(mistake({{"worker-network-endpoints", "10.130.0.5"}}) ==
        "tpu_vms: worker-network-endpoints is '10.130.0.5', which is not a list of id:id:address");
  for (const char* address : {" ", "fd00::5", "2001:db8:0:1:1:1:1:1", "10.0.0.2 x", "10.0.0.2\nx", "\x1b[2J"})
    CHECK(mistake({{"worker-network-endpoints", std::string("unknown:unknown:10.130.0.5,unknown:unknown:") + address}})
              .ends_with("which is not a list of id:id:address"));
  CHECK(
      mistake({}, "HTTP/1.0 200 OK\r\nContent-Length: 60\r\n\r\nunknown:unknown:10.130.0.5").find("sends 26 of 60 bytes when") !=
      std::string::npos);
  CHECK(mistake({}, "welcome\r\n") ==
        "tpu_vms: the metadata server at HERE does not speak HTTP when asked for worker-network-endpoints");
  CHECK(mistake({}, "silence") ==
        "tpu_vms: the metadata server at HERE does not answer within 300 ms when asked for worker-network-endpoints");
  CHECK(mistake({}, "HTTP/1.0 200 OK\r\n\r\n" + std::string(1 << 21, 'x')).find("sends more than a megabyte") !=
        std::string::npos);
}

TEST_CASE("tpu_vms: a machine without a metadata server hears what to use instead") {
  tpu_vms resolver;
  resolver.environment = [](const std::string&) { return std::optional<std::string>("127.0.0.1:1"); };
  CHECK(error_of([&] { resolver(); }) ==
        "tpu_vms: the metadata server at 127.0.0.1:1 cannot be reached (127.0.0.1:1: Connection refused); only TPU VMs have one: "
        "elsewhere tpu_workers() or explicit_cluster names the hosts");
}
