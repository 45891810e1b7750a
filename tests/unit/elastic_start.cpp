// needs: openssl protozero
// An elastic training whose first generation fails while its members connect: those that are left form another one.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <strata/base/text.hpp>
#include <strata/control/worker_connections.hpp>
#include <strata/exchange/collective_operations.hpp>
#include <strata/synchronous/among_processes.hpp>
#include <string>
#include <thread>
#include <vector>

#include "free_endpoint.hpp"
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;

namespace {
constexpr int workers = 4;

/// The part of an executor besides its process group; nothing in it could be lost.
class agreeing : public collective_operations<agreeing, control::worker_connections> {
 public:
  using collective_operations::collective_operations, collective_operations::first_size;
  agreeing(control::worker_connections all) : collective_operations(std::move(all)) {}
  static long step() { return 0; }
  static void set_step(long) {}
  static void parameters_changed() {}
  static void forget_messages() {}
  static void before_admission() {}
  static void after_admission() {}
  static void prepare_messages(int, purpose) {}
  static std::array<std::span<std::byte>, 2> lasting_arrays() { return {}; }
};

control::connection_options options() {
  return {.communication = {.timeout = 60s},
          .control = {.heartbeat = {.interval = 300ms, .missed = 3}},
          .elastic = {.least_workers = 1, .on_change = [](const std::string&) {}},
          .start_timeout = 60s};
}

cluster_spec cluster_of(const std::vector<endpoint>& addresses, int self) {
  cluster_spec spec;
  for (const endpoint& a : addresses) spec.worker.push_back(a);
  spec.task = {role::worker, self};
  return spec;
}
}  // namespace

TEST_CASE("a worker that is lost before it has connected: the others go on without it") {
  std::vector<endpoint> addresses;
  for (int i = 0; i < workers; ++i) addresses.push_back(strata::test::free_endpoint());
  std::vector<std::vector<double>> all(workers);
  std::vector<std::string> errors(workers);
  std::vector<std::thread> threads;
  for (int self = 0; self < workers - 1; ++self)
    threads.emplace_back([&, self] {
      try {
        agreeing group(control::worker_connections(cluster(cluster_of(addresses, self)), "the network", options()));
        const double mine = 10 * self;
        for (int i = 0; i < 2; ++i) all[std::size_t(self)] = group.gather(std::span(&mine, 1));
        group.leave();
      } catch (const std::exception& e) {
        errors[std::size_t(self)] = e.what();
      }
    });
  {
    const cluster lost(cluster_of(addresses, workers - 1));
    control::coordinator_client client(lost.coordinator(), "", options().control, lost.generation());
    client.join({.rank = workers - 1,
                 .size = workers,
                 .name = "worker 3",
                 .host = "127.0.0.1",
                 .pid = 1,
                 .agreement = control::agreement_on("the network", lost.spec(), 1)},
                60s, [](int r) { return std::to_string(r); });
  }  // it never sends a heartbeat
  for (std::thread& t : threads) t.join();
  for (int self = 0; self < workers - 1; ++self) {
    CHECK(errors[std::size_t(self)] == "");
    CHECK(all[std::size_t(self)] == std::vector<double>{0, 10, 20});
  }
}
