// How the processes of one training talk: messages between pairs, sent and received without waiting, then awaited together.
#pragma once
#include <concepts>
#include <cstddef>
#include <strata/base/error.hpp>

namespace strata {

/// Another process did not answer in time, or is gone.
struct communication_error : error {
  using error::error;
};

/// Processes 0 ... size() - 1, of which this one is rank(). `allocate(bytes)` gives a `memory`, zeroed and aligned to cache
/// lines, that messages are sent from or received into; it lives no longer than the communicator. Between two processes messages
/// arrive in the order in which they were sent. `wait(what)` returns when all that was begun is done, and throws
/// communication_error, naming `what` and the process it waited for. `begun()` marks the receives that have been begun so far, and
/// `wait_received(what, mark)` returns when these are done, whatever else is under way. Any thread may call, one at a time.
/// Messages that come again and again from the same places allocate nothing.
template <class C>
concept communicator = std::movable<C> && requires(C c, const C& k, std::size_t bytes, typename C::memory& m, int rank) {
  { k.rank() } -> std::same_as<int>;
  { k.size() } -> std::same_as<int>;
  { c.allocate(bytes) } -> std::same_as<typename C::memory>;
  { m.data() } -> std::same_as<std::byte*>;
  c.send(m, bytes, bytes, rank);     // memory, offset, bytes, to
  c.receive(m, bytes, bytes, rank);  // memory, offset, bytes, from
  c.wait("gradients");
  { k.begun() } -> std::semiregular;
  c.wait_received("gradients", k.begun());
};

/// It also says on which machine a process is: messages between machines cost more. All processes are told the same.
template <class C>
concept knows_machines = communicator<C> && requires(const C& k, int rank) {
  { k.machine_of(rank) } -> std::same_as<int>;
};

/// One process: nobody to talk to.
struct alone {
  struct memory {
    std::byte* data() { return nullptr; }
  };

  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  static memory allocate(std::size_t) { return {}; }
  static void send(memory&, std::size_t, std::size_t, int) {}
  static void receive(memory&, std::size_t, std::size_t, int) {}
  static void wait(const char*) {}
  static constexpr int begun() { return 0; }
  static void wait_received(const char*, int) {}
};

}  // namespace strata
