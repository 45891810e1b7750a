// Messages between pairs of processes: sent and received without waiting, then awaited together.
#pragma once
#include <concepts>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/reason.hpp>

namespace strata {

/// Another process did not answer in time, or has ended.
struct communication_error : strata_error {
  using strata_error::strata_error;
};

namespace reasons {
inline constexpr reason communicators_are_movable;
inline constexpr reason communicators_have_rank_and_size;
inline constexpr reason communicators_have_allocate_which_returns_a_memory;
inline constexpr reason communicators_have_send_and_receive_of_memory_offset_bytes_and_rank;
inline constexpr reason communicators_have_wait_for_all_messages;
inline constexpr reason communicators_have_begun_and_wait_received;
}  // namespace reasons

namespace detail {
template <class C>
auto requirements_of_communicator() {
  if constexpr (!std::movable<C>)
    return lacks<C, reasons::communicators_are_movable>{};
  else if constexpr (!requires(const C& k) {
                       { k.rank() } -> std::same_as<int>;
                       { k.size() } -> std::same_as<int>;
                     })
    return lacks<C, reasons::communicators_have_rank_and_size>{};
  else if constexpr (!requires(C c, std::size_t bytes, typename C::memory& m) {
                       { c.allocate(bytes) } -> std::same_as<typename C::memory>;
                       { m.data() } -> std::same_as<std::byte*>;
                     })
    return lacks<C, reasons::communicators_have_allocate_which_returns_a_memory>{};
  else if constexpr (!requires(C c, std::size_t bytes, typename C::memory& m, int rank) {
                       c.send(m, bytes, bytes, rank);     // memory, offset, bytes, to
                       c.receive(m, bytes, bytes, rank);  // memory, offset, bytes, from
                     })
    return lacks<C, reasons::communicators_have_send_and_receive_of_memory_offset_bytes_and_rank>{};
  else if constexpr (!requires(C c) { c.wait("gradients"); })
    return lacks<C, reasons::communicators_have_wait_for_all_messages>{};
  else if constexpr (!requires(C c, const C& k) {
                       { k.begun() } -> std::semiregular;
                       c.wait_received("gradients", k.begun());
                     })
    return lacks<C, reasons::communicators_have_begun_and_wait_received>{};
  else
    return no_complaint{};
}
/// no_complaint, or the first requirement that a communicator does not meet.
template <class C>
using communicator_verdict = decltype(requirements_of_communicator<C>());
}  // namespace detail

namespace core {
/// Processes 0 ... size() - 1; this one is rank().
///   `allocate(bytes)`                      returns a `memory`, zeroed and aligned to cache lines, for sending and receiving. The
///                                          communicator outlives it
///   `send(memory, offset, bytes, rank)`    begins to send; `receive` begins to receive. Messages between two processes arrive
///                                          in the order in which they were sent
///   `wait(what)`                           returns when all messages are done. Throws communication_error, naming `what` and the
///                                          process it waited for
///   `begun()`, `wait_received(what, mark)` waits only for the receives begun before mark = begun()
/// Any thread may call, one at a time. Repeated messages from the same memory allocate nothing.
template <class C>
concept communicator = std::same_as<detail::communicator_verdict<C>, detail::no_complaint>;

/// A communicator that notifies the other processes of errors and work in this one: `announce_error` and `announce_work` are
/// those of a process_group.
template <class C>
concept announcing_communicator = communicator<C> && requires(const C& k, const std::string& what) {
  k.announce_error(what);
  k.announce_work(what);
};

/// The bytes of a memory for messages as elements of type T.
template <class T>
T* numbers_in(auto& memory) {
  return reinterpret_cast<T*>(memory.data());
}

/// A communicator that can look up the machine of each process, because messages between machines cost more. `machine_of(rank)`
/// is the lowest rank on the same machine, equal in all processes.
template <class C>
concept knows_machines = communicator<C> && requires(const C& k, int rank) {
  { k.machine_of(rank) } -> std::same_as<int>;
};
}  // namespace core

namespace detail {
/// The communicator of a single process.
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
}  // namespace detail

}  // namespace strata
