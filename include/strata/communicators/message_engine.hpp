// message_engine: the interface of what carries messages between machines.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/wait_state.hpp>
#include <string>
#include <utility>

namespace strata::detail {

/// The functions of a communicator, with plain pointers. Memory must stay in place until its message is done.
struct message_engine {
  virtual ~message_engine() = default;
  /// The lowest rank on the machine of `rank`, if the engine knows it.
  virtual int machine_of(int rank) const { return rank; }
  virtual void send(std::byte* from, std::size_t bytes, int to) = 0;
  virtual void receive(std::byte* to, std::size_t bytes, int from) = 0;
  virtual std::uint64_t begun() const = 0;
  virtual void wait_received(const char* what, std::uint64_t mark) = 0;
  virtual void wait(const char* what) = 0;
  /// Moves messages without waiting. Returns whether it has to be called again; false if the engine has a thread of its own.
  virtual bool go_on() { return false; }
  /// Called by another thread: ends this wait and all later ones with an error that has this reason.
  virtual void interrupt(const std::string& why) = 0;
  /// Drops all messages, because their memory may go away.
  virtual void stop() = 0;
};

/// The arguments for making an engine. `host`: the address of this process for the others.
struct engine_arguments {
  key_value_store& store;
  int rank, size;
  const std::string& host;
  std::chrono::milliseconds timeout;
  std::shared_ptr<wait_state> waits;
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

}  // namespace strata::detail
