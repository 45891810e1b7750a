// Processes on one or several machines, over TCP: Gloo carries the messages. Needs libgloo.
// needs: gloo
#pragma once
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/communication_options.hpp>
#include <strata/distribute/communicators/message_engine.hpp>
#include <strata/distribute/communicators/message_memory.hpp>
#include <strata/distribute/communicators/wait_state.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/sockets/dial.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

struct gloo_options {
  std::string host = "127.0.0.1";                                // name or address of this process for the others
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // for connecting, and for each wait
};

/// Gloo's interface of a key/value store. Gloo waits for a key before it gets it, so the value is kept in between.
class gloo_store final : public gloo::rendezvous::Store {
 public:
  gloo_store(key_value_store& store, std::chrono::milliseconds timeout) : store_(store), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const auto awaited = awaited_.extract(key);
    const std::string value = awaited ? std::move(awaited.mapped()) : store_.get(prefix + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) awaited_[key] = store_.get(prefix + key, timeout);
  }

 private:
  static constexpr const char* prefix = "gloo ";

  key_value_store& store_;
  std::chrono::milliseconds timeout_;
  std::map<std::string, std::string> awaited_;
};

/// Copies are the same end of the same connections. After an error every wait throws.
///   multi_worker_mirrored{tf_config(), {.communication = {.implementation = gloo_communication}}}
class gloo_communicator {
  using buffer = gloo::transport::UnboundBuffer;
  /// Gloo needs a buffer for each message under way. Buffers are reused, because messages use the same places in each step.
  struct place {
    std::byte* data;
    std::size_t bytes;
    bool busy;
    std::unique_ptr<buffer> handle;
  };
  struct pending {
    std::size_t place;
    int peer;
    bool receives, done;
  };
  struct state {
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::vector<place> places;
    std::size_t likely_place = 0;  // of the next message: steps repeat the same order
    std::vector<pending> under_way;
    std::uint64_t receives = 0, done = 0;       // begun, and done
    std::vector<std::uint64_t> sent, received;  // messages per peer; their number matches a send with its receive
    gloo_options options;
    std::shared_ptr<wait_state> waits;
    std::atomic<buffer*> awaited{nullptr};
    std::atomic<std::int64_t> due{never};  // when that wait ends at the latest, by the time of `waits`
    std::thread watch;                     // ends waits that are overdue
    std::atomic<bool> ends{false};

    ~state() {
      ends = true;
      if (watch.joinable()) watch.join();
    }
  };
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

 public:
  using memory = message_memory;

  /// Meets the other processes through the store. Throws communication_error if one does not connect in time.
  gloo_communicator(key_value_store& store, int rank, int size, gloo_options options = {},
                    std::shared_ptr<wait_state> waits = std::make_shared<wait_state>())
      : state_(std::make_shared<state>()) {
    ignore_broken_pipes();
    state_->waits = std::move(waits);
    state_->options = std::move(options);
    state_->sent.resize(std::size_t(size));
    state_->received.resize(std::size_t(size));
    try {
      gloo::transport::tcp::attr attributes;
      // Gloo 0.5 looks names up without a deadline and does not see that a look-up fails.
      const auto deadline = std::chrono::steady_clock::now() + state_->options.timeout;
      attributes.hostname = detail::numeric_host(detail::bound_at(state_->options.host, deadline).second);
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      state_->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
      state_->context->setTimeout(state_->options.timeout);
      gloo_store words(store, state_->options.timeout);
      state_->context->connectFullMesh(words, device);
      widen_sockets();
    } catch (const std::exception& e) {
      throw communication_error(detail::text_of(
          {"process ", rank, " of ", size, " (", state_->options.host, ") could not connect to the others: ", e.what()}));
    }
    state_->watch = std::thread([s = state_.get()] {
      for (; !s->ends; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
        if (is_overdue(*s)) end_wait(*s);
    });
  }

  int rank() const { return state_->context->rank; }
  int size() const { return state_->context->size; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }

  /// The memory must stay in place until the message is done.
  void send(std::byte* from, std::size_t bytes, int to) {
    const std::size_t i = free_place(from, bytes);
    guarded("a message", to, [&] { state_->places[i].handle->send(to, slot(state_->sent, to)); });
    state_->under_way.push_back({i, to, false, false});
  }
  void receive(std::byte* to, std::size_t bytes, int from) {
    const std::size_t i = free_place(to, bytes);
    guarded("a message", from, [&] { state_->places[i].handle->recv(from, slot(state_->received, from)); });
    state_->under_way.push_back({i, from, true, false});
    ++state_->receives;
  }
  template <class Memory>
  void send(Memory& from, std::size_t offset, std::size_t bytes, int to) {
    send(from.data() + offset, bytes, to);
  }
  template <class Memory>
  void receive(Memory& to, std::size_t offset, std::size_t bytes, int from) {
    receive(to.data() + offset, bytes, from);
  }
  std::uint64_t begun() const { return state_->receives; }
  void wait_received(const char* what, std::uint64_t mark) {
    stop_if_interrupted();
    for (std::size_t i = 0; state_->done < mark; ++i)
      if (state_->under_way[i].receives) finish(state_->under_way[i], what);
  }
  void wait(const char* what) {
    stop_if_interrupted();
    for (pending& p : state_->under_way) finish(p, what);
    state_->under_way.clear();
  }
  /// Closes the connections, because the memory of messages may go away.
  void stop() const {
    state_->under_way.clear();
    state_->context->closeConnections();
  }
  /// From another thread: ends this wait and all later ones with that reason. Closing the connections would not wake the waiting
  /// thread.
  void interrupt(const std::string& why) {
    state_->waits->interrupt(why);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    end_wait(*state_);
  }

 private:
  static bool is_overdue(const state& s) { return s.waits->time().time_since_epoch().count() > s.due; }
  static void end_wait(state& s) {
    if (buffer* const awaited = s.awaited.load()) {
      awaited->abortWaitRecv();
      awaited->abortWaitSend();
    }
  }
  /// Gloo would count the time during which others may be waited for as long as it takes, so it gets no deadline itself.
  void finish(pending& p, const char* what) {
    if (p.done) return;
    buffer& handle = *state_->places[p.place].handle;
    const wait_state::scope told(*state_->waits, what, p.peer);
    guarded(what, p.peer, [&] {
      constexpr std::chrono::milliseconds long_enough = std::chrono::hours(24 * 365);
      state_->due = (state_->waits->time() + state_->options.timeout).time_since_epoch().count();
      state_->awaited.store(&handle);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // this thread sees the interruption, or the other one the buffer
      bool done = false, overdue = false;
      while (!done && !overdue) {  // a wait may have been ended in place of the one before
        state_->waits->throw_if_interrupted();
        done = p.receives ? handle.waitRecv(long_enough) : handle.waitSend(long_enough);
        overdue = is_overdue(*state_);
      }
      state_->awaited.store(nullptr);
      state_->due = never;
      if (!done) throw communication_error(detail::text_of({"no answer within ", state_->options.timeout.count(), " ms"}));
    });
    state_->places[p.place].busy = false;
    state_->done += p.receives;
    p.done = true;
  }

  /// Writing to a process that is gone must be an error, not the end of this process.
  static void ignore_broken_pipes() {
    struct sigaction now{};
    if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  }

  /// Gloo sizes the send buffer of a socket when it sends a bound buffer, but not for unbound ones. Without this, large messages
  /// stall for 40 ms each time: a ring of 1 MB took 88 ms instead of 0.4.
  void widen_sockets() {
    constexpr int slot = 0x57A7;
    std::vector<char> out(256 << 10), in(out.size());
    for (int distance = 1; distance < size(); ++distance) {
      const int to = (rank() + distance) % size(), from = (rank() + size() - distance) % size();
      const auto sending = state_->context->getPair(to)->createSendBuffer(slot, out.data(), out.size());
      const auto receiving = state_->context->getPair(from)->createRecvBuffer(slot, in.data(), in.size());
      sending->send();
      receiving->waitRecv();
      sending->waitSend();
    }
  }

  static std::uint64_t slot(std::vector<std::uint64_t>& counts, int peer) {
    return 0x1'0000'0000ull + counts[std::size_t(peer)]++;
  }

  std::size_t free_place(std::byte* data, std::size_t bytes) {
    auto& places = state_->places;
    for (std::size_t k = 0; k < places.size(); ++k) {
      const std::size_t i = (state_->likely_place + k) % places.size();
      if (places[i].data == data && places[i].bytes == bytes && !places[i].busy) {
        places[i].busy = true;
        state_->likely_place = i + 1;
        return i;
      }
    }
    places.push_back({data, bytes, true, state_->context->createUnboundBuffer(data, bytes)});
    return places.size() - 1;
  }

  void stop_if_interrupted() const {
    if (!state_->waits->is_interrupted()) return;
    stop();
    throw communication_error(state_->waits->why());
  }
  template <class F>
  void guarded(const char* what, int peer, F&& f) const {
    try {
      f();
    } catch (const std::exception& e) {
      state_->due = never;
      state_->waits->interrupt(
          detail::text_of({what, ": process ", rank(), " lost or waited in vain for process ", peer, ": ", e.what()}), peer);
      stop();
      throw communication_error(state_->waits->why());
    }
  }

  std::shared_ptr<state> state_;
};
static_assert(communicator<gloo_communicator>);

template <>
struct please_include_strata_distribute_communicators_gloo_hpp<communication_implementation> {
  static constexpr communication_implementation value{
      .description = "all through Gloo",
      .make_engine = [](const detail::engine_arguments& a) -> std::unique_ptr<detail::message_engine> {
        return std::make_unique<detail::engine_over<gloo_communicator>>(
            gloo_communicator(a.store, a.rank, a.size, {a.host, a.timeout}, a.waits));
      }};
};

}  // namespace strata
