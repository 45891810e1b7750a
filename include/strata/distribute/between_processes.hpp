// Each message by the shortest way: through shared memory on one machine, through Gloo between machines; or through MPI.
// needs: gloo
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <strata/distribute/communication_options.hpp>
#include <strata/distribute/gloo.hpp>
#include <strata/distribute/key_value_store.hpp>
#include <strata/distribute/message_engine.hpp>
#include <strata/distribute/shared_memory.hpp>
#include <strata/distribute/wait_state.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// The options of it that matter here are the time-out and the implementation.
class between_processes {
 public:
  using memory = shared_memory_communicator::memory;

  /// `host` is where the others reach this process. Throws communication_error if one of them does not come in time, and
  /// strata::error where MPI is asked for without its header.
  between_processes(key_value_store& store, int rank, int size, const std::string& host, communication_options options = {},
                    std::shared_ptr<wait_state> waits = std::make_shared<wait_state>())
      : waits_(std::move(waits)),
        near_(store, rank, size, options.timeout, waits_),
        shares_memory_(options.implementation == communication_implementation::automatic) {
    if (options.implementation == communication_implementation::mpi) {
      if (!detail::make_mpi_engine) throw error("communication_implementation::mpi: the program has to include strata/distribute/mpi.hpp");
      if (size > 1) engine_ = detail::make_mpi_engine(rank, size, options.timeout, waits_);
      for (int r = 0; r < size; ++r) machines_.push_back(engine_ ? engine_->machine_of(r) : r);
      return;
    }
    // Which way a message takes is the same on both sides; who needs Gloo is agreed upon, since all connect or none does, and so are
    // machines.
    std::vector<std::string> near(std::size_t(size), "");
    std::string mine;
    for (int r = 0; r < size; ++r) mine += r == rank || is_near(r) ? '+' : '-';
    store.set("near " + std::to_string(rank), mine);
    for (int r = 0; r < size; ++r) near[std::size_t(r)] = store.get("near " + std::to_string(r), options.timeout);
    if (std::ranges::any_of(near, [](const std::string& seen) { return seen.find('-') != std::string::npos; }))
      far_.emplace(store, rank, size, gloo_options{host, options.timeout}, waits_);
    find_machines(near);
  }

  int rank() const { return near_.rank(); }
  int size() const { return near_.size(); }
  /// The lowest rank of those on the same machine.
  int machine_of(int rank) const { return machines_[std::size_t(rank)]; }
  memory allocate(std::size_t bytes) { return near_.allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    if (engine_) return engine_->send(from.data() + offset, bytes, to);
    is_near(to) ? near_.send(from, offset, bytes, to) : far_->send(from, offset, bytes, to);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    if (engine_) return engine_->receive(to.data() + offset, bytes, from);
    is_near(from) ? near_.receive(to, offset, bytes, from) : far_->receive(to, offset, bytes, from);
  }
  struct mark {
    std::uint64_t near = 0, far = 0;
  };
  mark begun() const { return {near_.begun(), engine_ ? engine_->begun() : far_ ? far_->begun() : 0}; }
  void wait_received(const char* what, mark upto) {
    wait_near([&] { near_.wait_received(what, upto.near); });
    if (engine_) engine_->wait_received(what, upto.far);
    if (far_) far_->wait_received(what, upto.far);
  }
  void wait(const char* what) {
    wait_near([&] { near_.wait(what); });
    if (engine_) engine_->wait(what);
    if (far_) far_->wait(what);
  }
  /// From another thread: this wait and all later ones throw communication_error with that reason.
  void interrupt(const std::string& why) {
    waits_->interrupt(why);
    if (far_) far_->interrupt(why);
  }

 private:
  /// If that fails, nobody waits for Gloo, which would go on with memory that may not last.
  template <class Wait>
  void wait_near(Wait&& wait) {
    try {
      wait();
    } catch (const communication_error&) {
      if (far_) far_->stop();
      throw;
    }
  }

  bool is_near(int rank) const { return shares_memory_ && near_.reaches(rank); }

  /// Those that reach each other; where that is no question of either or, nobody is on anybody's machine.
  void find_machines(const std::vector<std::string>& near) {
    for (const std::string& seen : near) machines_.push_back(int(seen.find('+')));
    for (std::size_t a = 0; a < near.size(); ++a)
      for (std::size_t b = 0; b < near.size(); ++b)
        if ((near[a].at(b) == '+') != (machines_[a] == machines_[b])) {
          for (std::size_t r = 0; r < near.size(); ++r) machines_[r] = int(r);
          return;
        }
  }

  std::shared_ptr<wait_state> waits_;
  shared_memory_communicator near_;
  std::optional<gloo_communicator> far_;
  std::unique_ptr<detail::message_engine> engine_;
  bool shares_memory_;
  std::vector<int> machines_;
};
static_assert(knows_machines<between_processes>);

}  // namespace strata
