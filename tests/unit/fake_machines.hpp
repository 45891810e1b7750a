// A communicator between threads that simulates several machines; it counts the bytes that are sent between them.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <strata/communicators/in_process.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata::test {
using namespace core;

struct traffic {
  std::atomic<long> bytes{0}, between_machines{0};
};

/// Rank r is on machine machines[r].
class fake_machines {
  in_process to_others_;
  std::shared_ptr<const std::vector<int>> machines_;
  std::shared_ptr<traffic> sent_;

 public:
  using memory = in_process::memory;

  fake_machines(in_process to_others, std::shared_ptr<const std::vector<int>> machines, std::shared_ptr<traffic> sent)
      : to_others_(std::move(to_others)), machines_(std::move(machines)), sent_(std::move(sent)) {}

  int rank() const { return to_others_.rank(); }
  int size() const { return to_others_.size(); }
  int machine_of(int rank) const { return (*machines_)[std::size_t(rank)]; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    sent_->bytes += long(bytes);
    if (machine_of(to) != machine_of(rank())) sent_->between_machines += long(bytes);
    to_others_.send(from, offset, bytes, to);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { to_others_.receive(to, offset, bytes, from); }
  void wait(const char* what) { to_others_.wait(what); }
  auto begun() const { return to_others_.begun(); }
  void wait_received(const char* what, std::uint64_t mark) { to_others_.wait_received(what, mark); }
};
static_assert(knows_machines<fake_machines>);

/// Runs f(communicator) in a thread for each process. Returns the error of each rank, "" if nothing is thrown.
template <class F>
std::vector<std::string> among_machines(const std::vector<int>& machines, traffic& sent, F&& f,
                                        std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  const auto of_ranks = std::make_shared<const std::vector<int>>(machines);
  const std::shared_ptr<traffic> counted(&sent, [](traffic*) {});
  std::vector<std::string> failures(machines.size());
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(int(machines.size()), timeout))
    threads.emplace_back([&, member] {
      try {
        f(fake_machines(member, of_ranks, counted));
      } catch (const std::exception& e) {
        failures[std::size_t(member.rank())] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return failures;
}

}  // namespace strata::test
