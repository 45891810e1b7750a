// needs: openssl protozero
// A training of 1,024 processes: all agreements are compared, and all processes receive the reason of a failure.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/control/worker_connections.hpp>
#include <string>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "free_endpoint.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::control;
using strata::test::contains;
using strata::test::free_endpoint;

using namespace std::chrono_literals;

namespace {
constexpr int size_of_cluster = 1024;

cluster_spec large(int renamed = -1) {
  cluster_spec spec;
  for (int r = 0; r < size_of_cluster; ++r)
    spec.worker.push_back(endpoint{detail::text_of({"node", r, r == renamed ? "b" : "", ".rack7.example.org"}), 2222});
  return spec;
}
member worker(int rank, agreement on) {
  return {.rank = rank,
          .size = size_of_cluster,
          .name = detail::text_of({"worker ", rank}),
          .host = detail::text_of({"node", rank, ".rack7.example.org"}),
          .pid = 4711,
          .agreement = std::move(on)};
}

/// Concurrent calls of many members, over few connections.
class members {
  std::vector<std::shared_ptr<detail::message_connection>> connections_;
  detail::calls_of_thread calls_;

 public:
  explicit members(const endpoint& where) {
    for (int i = 0; i < 32; ++i)
      connections_.push_back(
          detail::server_connection(where, {}, largest_answer).open(std::chrono::steady_clock::now() + 60s).open);
  }
  template <class Message>
  void begin(const char* method, int rank, const Message& message) {
    const wire::sender from{.run = "run", .rank = rank, .incarnation = std::uint64_t(1000 + rank)};
    calls_.begin(connections_[std::size_t(rank) % connections_.size()], method, wire::sealed(from, message),
                 std::chrono::steady_clock::now() + 120s);
  }
  /// The number of calls per outcome: an answer, or the message of the refusal.
  std::vector<std::pair<std::string, int>> outcomes() {
    std::vector<std::pair<std::string, int>> all;
    while (!calls_.empty()) {
      const detail::call_status status = calls_.next()->end.status;
      const std::string words = status.ok() ? "an answer" : status.text;
      const auto known = std::ranges::find(all, words, [](const auto& each) { return each.first; });
      known == all.end() ? void(all.push_back({words, 1})) : void(++known->second);
    }
    return all;
  }
  /// All members join, the last one after the others. Returns the outcomes.
  std::vector<std::pair<std::string, int>> join(const agreement& of_all, const agreement& of_last) {
    for (int r = 0; r + 1 < size_of_cluster; ++r) begin(coordinator_methods::join, r, join_request{worker(r, of_all), 60s});
    begin(coordinator_methods::join, size_of_cluster - 1, join_request{worker(size_of_cluster - 1, of_last), 60s});
    return outcomes();
  }
};

struct cluster_of_many {
  endpoint where = free_endpoint();
  control_options options;
  std::unique_ptr<coordinator> server;
  std::unique_ptr<members> all;

  explicit cluster_of_many(heartbeat_options heartbeat = {}) {
    options.connections = size_of_cluster;
    options.heartbeat = heartbeat;
    server = std::make_unique<coordinator>(where, "run", options, 0, elastic_options{}, 30s, size_of_cluster);
    all = std::make_unique<members>(where);
  }
};
}  // namespace

TEST_CASE("1,024 processes, one with another seed: all are told which one") {
  cluster_of_many c;
  const auto outcomes = c.all->join(agreement_on("seed 5, 8 leaves", large()), agreement_on("seed 6, 8 leaves", large()));
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].second == size_of_cluster);
  CHECK(contains(outcomes[0].first, " does not train what "));
  CHECK(contains(outcomes[0].first, "'seed 5'"));
  CHECK(contains(outcomes[0].first, "'seed 6'"));
  CHECK(outcomes[0].first.size() < 300);
}

TEST_CASE("1,024 processes, one with another address far back in the list: the words are those of the difference") {
  cluster_of_many c;
  const auto outcomes = c.all->join(agreement_on("seed 5", large()), agreement_on("seed 5", large(900)));
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].second == size_of_cluster);
  CHECK(contains(outcomes[0].first, "'... node900.rack7.example.org:2222 "));
  CHECK(contains(outcomes[0].first, "'... node900b.rack7.example.org:2222 "));
}

TEST_CASE("1,024 processes that agree, and then all are lost but one: it is told") {
  cluster_of_many c({.interval = 200ms});
  const agreement same = agreement_on("seed 5", large());
  CHECK(c.all->join(same, same) == std::vector<std::pair<std::string, int>>{{"an answer", size_of_cluster}});
  std::vector<std::pair<std::string, int>> outcomes;
  for (int i = 0; i < 1000 && (outcomes.empty() || outcomes[0].first == "an answer"); ++i) {
    c.all->begin(coordinator_methods::beat, 7, heartbeat_message{});
    outcomes = c.all->outcomes();
  }
  CHECK(contains(outcomes.at(0).first, "worker 0 (rank 0, node0.rack7.example.org, pid 4711), worker 1 ("));
  CHECK(contains(outcomes.at(0).first, " and 1015 more are considered dead: no heartbeat for "));
}

TEST_CASE("texts that differ only where they are cut, and long ones without a comma") {
  const std::string same(agreement::most, 'x');
  const agreement a(same + "A"), b(same + "B");
  CHECK(a != b);
  CHECK(a == agreement(same + "A"));
  CHECK(a.text.size() == agreement::most);
  CHECK(disagreement("worker 1", "worker 0 does", a, b) ==
        "worker 1 does not train what worker 0 does: the descriptions of program and cluster are equal for 49152 characters, and "
        "differ after these");
  CHECK(differences_of(std::string(150, 'y') + "1 z", std::string(150, 'y') + "2 z") ==
        std::pair<std::string, std::string>{"... " + std::string(100, 'y') + "1 z", "... " + std::string(100, 'y') + "2 z"});
}
