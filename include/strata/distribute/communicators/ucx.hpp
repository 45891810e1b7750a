// Processes on one or several machines: UCX carries the messages, through shared memory, TCP, InfiniBand or RoCE. Needs libucx.
// needs: ucx
#pragma once
#include <poll.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/communication_options.hpp>
#include <strata/distribute/communicators/message_engine.hpp>
#include <strata/distribute/communicators/message_memory.hpp>
#include <strata/distribute/communicators/shared_memory.hpp>
#include <strata/distribute/communicators/wait_state.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

struct ucx_options {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // for connecting, and for each wait
};

/// Copies are the same end of the same connections. After an error every wait throws.
///   multi_worker_mirrored{tf_config(), {.communication = {.implementation = ucx_communication}}}
/// UCX chooses transports and network devices; its environment variables restrict the choice: UCX_TLS=tcp, UCX_NET_DEVICES=eth0.
class ucx_communicator {
  struct pending {
    void* request;  // null: done
    int peer;
    bool receives;
  };
  struct connection {
    ucp_ep_h handle = nullptr;
    ucs_status_t status = UCS_OK;
    std::uint64_t sent = 0, received = 0;  // messages; their number matches a send with its receive
    int machine = 0;                       // its lowest rank
  };
  struct state {
    int rank, size;
    ucx_options options;
    std::shared_ptr<wait_state> waits;
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    int event = -1;  // readable when UCX has something to do
    std::vector<connection> peers;
    std::vector<pending> under_way;
    std::uint64_t receives = 0;         // begun so far
    std::uint64_t receives_before = 0;  // of those, the ones before under_way

    state(int r, int n, ucx_options o, std::shared_ptr<wait_state> w)
        : rank(r), size(n), options(o), waits(std::move(w)), peers(std::size_t(n)) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      drop();
      close(0);
      if (worker) ucp_worker_destroy(worker);
      if (context) ucp_cleanup(context);
    }

    /// Ends all messages, because their memory may go away.
    void drop() {
      if (under_way.empty()) return;
      for (const pending& p : under_way)
        if (p.request && p.receives) ucp_request_cancel(worker, p.request);
      close(UCP_EP_CLOSE_FLAG_FORCE);
      for (pending& p : under_way)
        if (p.request) finish_within_a_second(p.request);
      under_way.clear();
    }
    /// Without UCP_EP_CLOSE_FLAG_FORCE what was sent arrives first.
    void close(unsigned how) {
      for (connection& c : peers) {
        if (!c.handle) continue;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = c.status == UCS_OK ? how : unsigned{UCP_EP_CLOSE_FLAG_FORCE};
        void* const closing = ucp_ep_close_nbx(std::exchange(c.handle, nullptr), &param);
        if (UCS_PTR_IS_PTR(closing)) finish_within_a_second(closing);
      }
    }

   private:
    void finish_within_a_second(void* request) const {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
        if (ucp_worker_progress(worker) == 0) std::this_thread::yield();
      ucp_request_free(request);  // in any state: UCX itself completes what is still under way
    }
  };

 public:
  using memory = message_memory;

  /// Meets the other processes through the store. Throws communication_error if one does not connect in time.
  ucx_communicator(key_value_store& store, int rank, int size, ucx_options options = {},
                   std::shared_ptr<wait_state> waits = std::make_shared<wait_state>())
      : state_(std::make_shared<state>(rank, size, options, std::move(waits))) {
    try {
      start();
      connect(store);
    } catch (const std::exception& e) {
      throw communication_error(
          detail::text_of({"process ", rank, " of ", size, " could not connect to the others through UCX: ", e.what()}));
    }
  }

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  int machine_of(int rank) const { return state_->peers[std::size_t(rank)].machine; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }

  /// The memory must stay in place until the message is done.
  void send(std::byte* from, std::size_t bytes, int to) {
    stop_if_interrupted();
    connection& c = state_->peers[std::size_t(to)];
    const ucp_request_param_t as_bytes{};
    add(ucp_tag_send_nbx(c.handle, from, bytes, tag(rank(), c.sent++), &as_bytes), to, false);
  }
  void receive(std::byte* to, std::size_t bytes, int from) {
    stop_if_interrupted();
    connection& c = state_->peers[std::size_t(from)];
    const ucp_request_param_t as_bytes{};
    add(ucp_tag_recv_nbx(state_->worker, to, bytes, tag(from, c.received++), ~ucp_tag_t{0}, &as_bytes), from, true);
  }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) { send(from.data() + offset, bytes, to); }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) { receive(to.data() + offset, bytes, from); }
  std::uint64_t begun() const { return state_->receives; }
  void wait_received(const char* what, std::uint64_t mark) {
    stop_if_interrupted();
    std::uint64_t number = state_->receives_before;
    for (std::size_t i = 0; number < mark; ++i)
      if (state_->under_way[i].receives) finish(state_->under_way[i], what), ++number;
  }
  void wait(const char* what) {
    stop_if_interrupted();
    for (pending& p : state_->under_way) finish(p, what);
    state_->under_way.clear();
    state_->receives_before = state_->receives;
  }
  /// From another thread: ends this wait and all later ones with that reason.
  void interrupt(const std::string& why) { state_->waits->interrupt(why); }
  /// Closes the connections, because the memory of messages may go away.
  void stop() const {
    state_->drop();
    state_->close(UCP_EP_CLOSE_FLAG_FORCE);
  }

 private:
  static ucp_tag_t tag(int sender, std::uint64_t number) { return std::uint64_t(sender) << 40 | (number & 0xff'ffff'ffffu); }

  static void require(ucs_status_t status, const char* what) {
    if (status != UCS_OK) throw communication_error(detail::text_of({what, ": ", ucs_status_string(status)}));
  }

  void start() {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    params.estimated_num_eps = std::size_t(size());
    require(ucp_init(&params, nullptr, &state_->context), "initialization");

    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    require(ucp_worker_create(state_->context, &worker, &state_->worker), "making a worker");
    require(ucp_worker_get_efd(state_->worker, &state_->event), "making a worker");
  }

  /// A message to and from each process makes the connections, so that an error comes now.
  void connect(key_value_store& store) {
    ucp_address_t* own = nullptr;
    std::size_t bytes = 0;
    require(ucp_worker_get_address(state_->worker, &own, &bytes), "the address of a worker");
    store.set(detail::text_of({"ucx ", rank()}), std::string(reinterpret_cast<const char*>(own), bytes));
    ucp_worker_release_address(state_->worker, own);
    store.set(detail::text_of({"ucx machine ", rank()}), detail::process_space());

    const std::vector<std::string> addresses = store.get_all("ucx ", size(), state_->options.timeout);
    const std::vector<std::string> machines = store.get_all("ucx machine ", size(), state_->options.timeout);
    for (int r = 0; r < size(); ++r) {
      connection& c = state_->peers[std::size_t(r)];
      while (machines[std::size_t(c.machine)] != machines[std::size_t(r)]) ++c.machine;
      if (r == rank()) continue;
      ucp_ep_params_t params{};
      params.field_mask =
          UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
      params.address = reinterpret_cast<const ucp_address_t*>(addresses[std::size_t(r)].data());
      params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      params.err_handler = {[](void* of, ucp_ep_h, ucs_status_t status) { static_cast<connection*>(of)->status = status; }, &c};
      require(ucp_ep_create(state_->worker, &params, &c.handle), "a connection");
    }
    memory greetings(std::size_t(size()) + 1);
    for (int r = 0; r < size(); ++r)
      if (r != rank()) {
        receive(greetings, std::size_t(r), 1, r);
        send(greetings, std::size_t(size()), 1, r);
      }
    wait("connecting");
  }

  void add(void* request, int peer, bool receives) {
    if (UCS_PTR_IS_ERR(request)) fail("a message", peer, ucs_status_string(UCS_PTR_STATUS(request)));
    state_->under_way.push_back({request, peer, receives});
    state_->receives += receives;
  }

  /// UCX moves messages while it is asked to. This asks repeatedly, then sleeps until there is something to do.
  void finish(pending& p, const char* what) {
    if (is_done(p, what)) return;
    constexpr int before_sleep = 2000;
    const wait_state::scope told(*state_->waits, what, p.peer);
    const auto deadline = state_->waits->time() + state_->options.timeout;
    for (int idle = 0; !is_done(p, what);) {
      stop_if_interrupted();
      if (ucp_worker_progress(state_->worker) != 0) {
        idle = 0;
      } else if (++idle > before_sleep) {
        if (state_->waits->time() > deadline)
          fail(what, p.peer, detail::text_of({"no answer within ", state_->options.timeout.count(), " ms"}));
        sleep_for_at_most_10_ms();
      } else if (idle % 16 == 0) {
        std::this_thread::yield();
      }
    }
  }
  void sleep_for_at_most_10_ms() const {
    if (ucp_worker_arm(state_->worker) != UCS_OK) return;  // something has happened
    pollfd event{state_->event, POLLIN, 0};
    ::poll(&event, 1, 10);  // another thread may interrupt this wait
  }
  bool is_done(pending& p, const char* what) {
    if (p.request) {
      const ucs_status_t status = ucp_request_check_status(p.request);
      const ucs_status_t of_peer = state_->peers[std::size_t(p.peer)].status;
      if (status == UCS_INPROGRESS && of_peer == UCS_OK) return false;
      if (status == UCS_INPROGRESS) fail(what, p.peer, ucs_status_string(of_peer));
      ucp_request_free(std::exchange(p.request, nullptr));
      if (status != UCS_OK) fail(what, p.peer, ucs_status_string(status));
    }
    return true;
  }

  void stop_if_interrupted() const {
    if (!state_->waits->is_interrupted()) return;
    stop();
    throw communication_error(state_->waits->why());
  }
  [[noreturn]] void fail(const char* what, int peer, const std::string& why) const {
    state_->waits->interrupt(
        detail::text_of({what, ": process ", rank(), " lost or waited in vain for process ", peer, ": ", why}), peer);
    stop();
    throw communication_error(state_->waits->why());
  }

  std::shared_ptr<state> state_;
};
static_assert(knows_machines<ucx_communicator>);

namespace detail {
struct ucx_engine final : engine_over<ucx_communicator> {
  using engine_over::engine_over;
  int machine_of(int rank) const override { return to_others_.machine_of(rank); }
};
}  // namespace detail

template <>
struct please_include_strata_distribute_communicators_ucx_hpp<communication_implementation> {
  static constexpr communication_implementation value{
      .description = "all through UCX",
      .make_engine = [](const detail::engine_arguments& a) -> std::unique_ptr<detail::message_engine> {
        return std::make_unique<detail::ucx_engine>(ucx_communicator(a.store, a.rank, a.size, {a.timeout}, a.waits));
      }};
};

}  // namespace strata
