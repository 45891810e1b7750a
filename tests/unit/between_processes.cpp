// needs: protozero
// Messages between processes of several simulated machines. The processes are threads that use shared memory inside a machine and
// TCP between machines.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <strata/communicators/between_processes.hpp>
#include <strata/cpu/engine/host_arithmetic.hpp>
#include <strata/exchange/tree_reduction.hpp>
#include <string>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;
using namespace std::chrono_literals;

namespace {
/// The store of a process on machine number `machine`: that number is added to the address of its shared memory.
class store_of_machine final : public key_value_store {
 public:
  store_of_machine(key_value_store& store, int machine) : store_(store), machine_(machine) {}
  void set(const std::string& key, const std::string& value) override {
    if (!key.starts_with("shared memory of ")) return store_.set(key, value);
    auto address = wire::decode<detail::shared_memory_address>(value);
    if (!address.space.empty()) address.space += "/machine_" + std::to_string(machine_);
    store_.set(key, wire::encode(address));
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override { return store_.get(key, timeout); }

 private:
  key_value_store& store_;
  int machine_;
};

/// f(communicator) in a thread for each process.
template <class F>
void among(const std::vector<int>& machines, communication_options options, F&& f) {
  in_process_store store;
  std::vector<std::string> failures(machines.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(machines.size()); ++rank)
    threads.emplace_back([&, rank] {
      try {
        store_of_machine told(store, machines[std::size_t(rank)]);
        between_processes c(told, rank, int(machines.size()), "127.0.0.1", options);
        f(c);
      } catch (const std::exception& e) {
        failures[std::size_t(rank)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}
}  // namespace

TEST_CASE("machines are those whose processes share memory; sums have the bits of one process, in every bucket and round") {
  constexpr long size = 16 * 3000;
  constexpr int count = 8;
  alignas(64) static float leaves[count][size];
  alignas(64) static float expected[size];
  const float* at[count];
  for (int l = 0; l < count; ++l) {
    at[l] = leaves[l];
    for (long i = 0; i < size; ++i) leaves[l][i] = 1.f / float(1 + (i * 31 + l * 17) % 1009);
  }
  sum_leaves(expected, at, count, 0, size);
  const std::vector<gradient_bucket> buckets{
      {32'000, size, 9, "gradients of c"}, {16, 32'000, 6, "gradients of b"}, {0, 16, 1, "gradients of a"}};
  struct setting {
    std::vector<int> machines;
    communication_implementation implementation;
    std::vector<int> names;
  };
  const setting settings[] = {{{0, 0, 1, 1}, communication_implementation::automatic, {0, 0, 2, 2}},
                              {{0, 1, 0}, communication_implementation::automatic, {0, 1, 0}},
                              {{5, 5}, communication_implementation::automatic, {0, 0}},
                              {{0, 0, 1, 1}, communication_implementation::tcp, {0, 1, 2, 3}}};
  for (const setting& s : settings) {
    CAPTURE(s.machines.size());
    among(s.machines, {.timeout = 20s, .implementation = s.implementation}, [&](between_processes& c) {
      for (int r = 0; r < c.size(); ++r)
        if (c.machine_of(r) != s.names[std::size_t(r)])
          throw strata_error("process " + std::to_string(r) + " is on machine " + std::to_string(c.machine_of(r)));
      thread_team team(1);
      tree_reduction<float, between_processes> sum;
      sum.prepare(c, buckets, count);
      for (int round = 0; round < 20; ++round) {
        const leaf_range own = share_of(count, c.rank(), c.size());
        sum.begin(c, at + own.begin, count);
        for (int l = own.size(); l > 0; --l)
          for (int group = 10; group >= 0; --group) sum.passed(c, group);
        if (!std::equal(expected, expected + size, sum.finish(c, team))) throw strata_error("wrong sum");
      }
    });
  }
}

TEST_CASE("messages to other machines go on while a process waits for one of its own machine") {
  constexpr std::size_t much = 24 << 20;  // more than sockets hold
  among({0, 0, 1, 1}, {.timeout = 10s}, [](between_processes& c) {
    auto large = c.allocate(much), small = c.allocate(8);
    const int neighbour = c.rank() ^ 1, other = 3 - c.rank();
    if (c.rank() == 0 ||
        c.rank() == 2) {  // they wait for their neighbours, which wait for the rest of what the other one of them sends
      large.data()[much - 1] = std::byte(5);
      c.send(large, 0, much, other);
      c.receive(small, 0, 8, neighbour);
      c.wait_received("a word", c.begun());
    } else {
      c.receive(large, 0, much, other);
      c.wait_received("much", c.begun());
      if (large.data()[much - 1] != std::byte(5)) throw strata_error("not all of it");
      c.send(small, 0, 8, neighbour);
    }
    c.wait("the end");
  });
}
