// What carries messages between machines, behind one interface.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/distribute/communicators/wait_state.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <string>
#include <utility>

namespace strata::detail {

/// What a communicator does, from and into any memory that stays where it is.
struct message_engine {
  virtual ~message_engine() = default;
  /// The lowest rank on the same machine, where the engine knows it.
  virtual int machine_of(int rank) const { return rank; }
  virtual void send(std::byte* from, std::size_t bytes, int to) = 0;
  virtual void receive(std::byte* to, std::size_t bytes, int from) = 0;
  virtual std::uint64_t begun() const = 0;
  virtual void wait_received(const char* what, std::uint64_t mark) = 0;
  virtual void wait(const char* what) = 0;
  /// Moves what can be moved without waiting. Whether this thread has to come again, or somebody else sees to the rest.
  virtual bool go_on() { return false; }
  /// From another thread: ends a wait with that reason.
  virtual void interrupt(const std::string& why) = 0;
  /// Nothing is sent or received any more: the memory that it would come from, or go to, may not last.
  virtual void stop() = 0;
};

template <class Communicator>
class engine_over : public message_engine {
 protected:
  Communicator to_others_;

 public:
  explicit engine_over(Communicator c) : to_others_(std::move(c)) {}
  void send(std::byte* from, std::size_t bytes, int to) override { to_others_.send(from, bytes, to); }
  void receive(std::byte* to, std::size_t bytes, int from) override { to_others_.receive(to, bytes, from); }
  std::uint64_t begun() const override { return to_others_.begun(); }
  void wait_received(const char* what, std::uint64_t mark) override { to_others_.wait_received(what, mark); }
  void wait(const char* what) override { to_others_.wait(what); }
  bool go_on() override {
    if constexpr (requires { to_others_.go_on(); }) return to_others_.go_on();
    return false;
  }
  void interrupt(const std::string& why) override { to_others_.interrupt(why); }
  void stop() override { to_others_.stop(); }
};

/// What strata/distribute/communicators/gloo.hpp and strata/distribute/communicators/mpi.hpp set: each makes the engine of process
/// `rank` of `size`. MPI throws communication_error if it numbers them otherwise.
inline std::unique_ptr<message_engine> (*make_gloo_engine)(key_value_store& store, int rank, int size, const std::string& host,
                                                           std::chrono::milliseconds timeout,
                                                           std::shared_ptr<wait_state> waits) = nullptr;
inline std::unique_ptr<message_engine> (*make_mpi_engine)(int rank, int size, std::chrono::milliseconds timeout,
                                                          std::shared_ptr<wait_state> waits) = nullptr;

}  // namespace strata::detail
