// Sends messages through shared memory on one machine and over TCP between machines, or through MPI. Needs protozero.
// needs: protozero
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <strata/communicators/communication_options.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/message_engine.hpp>
#include <strata/communicators/shared_memory.hpp>
#include <strata/communicators/tcp.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/net/byte_stream.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::core {

/// Of the options, `timeout` and `implementation` are used.
class between_processes {
 public:
  using memory = shared_memory_communicator::memory;

  /// Returns the protection of messages between machines; called only if there are such messages.
  using protection_source = std::function<std::shared_ptr<const detail::socket_protection>()>;

  /// `host`: where the others reach this process. Throws communication_error if one of them does not connect in time.
  between_processes(key_value_store& store, int rank, int size, const std::string& host, communication_options options = {},
                    std::shared_ptr<wait_state> waits = std::make_shared<wait_state>(), const protection_source& protection = {})
      : waits_(std::move(waits)), near_(store, rank, size, options.timeout, waits_, options.implementation.shared_memory) {
    if (const auto make_engine = options.implementation.make_engine) {
      if (size > 1) far_ = make_engine({store, rank, size, host, options.timeout, waits_});
      for (int r = 0; r < size; ++r) machines_.push_back(far_ ? far_->machine_of(r) : r);
      return;
    }
    // Both sides choose the same path for a message, because all processes have the same list of machines.
    std::vector<bool> is_far;
    for (int r = 0; r < size; ++r) {
      is_far.push_back(r != rank && !near_.reaches(r));
      machines_.push_back(near_.machine_of(r));
    }
    const bool one_machine = std::ranges::count(machines_, 0) == size;
    if (one_machine) return;
    far_ = std::make_unique<detail::engine_over<tcp_communicator>>(
        tcp_communicator(store, rank, size, {host, options.timeout, protection ? protection() : nullptr}, waits_, is_far));
    near_.while_waiting([engine = far_.get()] { return engine->go_on(); });
  }

  int rank() const { return near_.rank(); }
  int size() const { return near_.size(); }
  /// The lowest rank on the machine of `rank`.
  int machine_of(int rank) const { return machines_[std::size_t(rank)]; }
  memory allocate(std::size_t bytes) { return near_.allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    near_.reaches(to) ? near_.send(from, offset, bytes, to) : far_->send(from.data() + offset, bytes, to);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    near_.reaches(from) ? near_.receive(to, offset, bytes, from) : far_->receive(to.data() + offset, bytes, from);
  }
  struct mark {
    std::uint64_t near = 0, far = 0;
  };
  mark begun() const { return {near_.begun(), far_ ? far_->begun() : 0}; }
  void wait_received(const char* what, mark upto) {
    wait_near([&] { near_.wait_received(what, upto.near); });
    if (far_) far_->wait_received(what, upto.far);
  }
  void wait(const char* what) {
    wait_near([&] { near_.wait(what); });
    if (far_) far_->wait(what);
  }
  /// From another thread: ends this wait and all later ones with that reason.
  void interrupt(const std::string& why) {
    waits_->interrupt(why);
    if (far_) far_->interrupt(why);
  }

 private:
  /// If this wait fails, the messages between machines are dropped instead of waited for, because their memory may go away.
  template <class Wait>
  void wait_near(Wait&& wait) {
    try {
      wait();
    } catch (const communication_error&) {
      if (far_) far_->stop();
      throw;
    }
  }

  std::shared_ptr<wait_state> waits_;
  shared_memory_communicator near_;
  std::unique_ptr<detail::message_engine> far_;
  std::vector<int> machines_;
};
static_assert(knows_machines<between_processes>);

}  // namespace strata::core
