// A worker's connections in a synchronous training: to the coordinator and to the other workers. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/communicators/between_processes.hpp>
#include <strata/communicators/elastic.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/control/admission.hpp>
#include <strata/control/coordinator.hpp>
#include <strata/control/coordinator_client.hpp>
#include <strata/control/heartbeat.hpp>
#include <strata/net/tls_stream.hpp>
#include <strata/resolvers/cluster.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::control {

/// The options of a strategy that concern connections.
struct connection_options {
  communication_options communication{};
  control_options control{};
  elastic_options elastic{};
  std::chrono::milliseconds start_timeout{};  // until all workers have joined, or a late one is taken in
  int places = 1;                             // processes that have one copy of the network together, see generations
};

/// The text on which all workers must agree: the program and the cluster.
inline agreement agreement_on(const std::string& program, const cluster_spec& cluster, int least_workers = 0) {
  const std::string elastic = least_workers > 0 ? detail::text_of({"; elastic from ", least_workers, " workers on"}) : "";
  return detail::text_of({program, elastic, "; cluster ", to_string(cluster)});
}

/// A communicator between the workers of a cluster. That of the chief also runs the coordinator. Copies are the same connections.
/// With elastic options it survives its generation, and a late worker waits until it is taken in.
class worker_connections {
 public:
  using memory = core::between_processes::memory;
  using mark = core::between_processes::mark;

  /// `program` describes what is trained; it must be the same in all workers. Throws communication_error if a worker does not
  /// join or trains another program, and strata_error for elastic options that are not valid.
  worker_connections(const cluster& members, const std::string& program, const connection_options& options)
      : state_(std::make_shared<state>()) {
    state& s = *state_;
    s.options = options;
    s.self.rank = members.rank(), s.self.size = members.size();
    const int least = options.elastic.least_workers;
    if (least < 0 || least > s.self.size)
      throw_error({"elastic_options: least_workers is ", least, ", but the cluster has ", s.self.size, " workers"});
    if (least > 0 && !options.communication.implementation.elastic)
      throw_error(
          "elastic_options: MPI ends all processes when one of them dies; leave communication_options.implementation as it is");
    s.encrypts = detail::admission(options.control).encrypts() && !options.communication.unprotected_data;
    if (s.encrypts && s.self.size > 1 && options.communication.implementation.make_engine)
      throw_error({"messages between workers go ", options.communication.implementation.description,
                   ", which does not encrypt them, although the training has a secret or certificates: leave "
                   "communication_options.implementation as it is, or set communication_options.unprotected_data"});
    if (s.self.size == 1) {
      s.is_alone = true;
      in_process_store store;
      s.now = std::make_unique<generation>(0, 1);
      s.now->processes = std::make_unique<core::between_processes>(store, 0, 1, "", options.communication);
      return;
    }
    // A process without the name of the run may still belong to it: `agreement` compares the clusters.
    const std::string run = members.has_named_run() ? members.run_id() : "";
    const auto own = members.address(members.task());
    s.self.name = to_string(members.task()), s.self.host = own ? own->host : "127.0.0.1", s.self.pid = int(::getpid());
    s.self.agreement =
        agreement_on(s.encrypts ? detail::text_of({program, ", encrypted messages"}) : program, members.spec(), least);
    if (members.is_chief())
      s.server = std::make_unique<coordinator>(members.coordinator(), run, options.control, members.generation(), options.elastic,
                                               patience(), s.self.size, options.places);
    s.client = std::make_shared<coordinator_client>(members.coordinator(), run, options.control, members.generation());
    const auto all = s.client->join(s.self, options.start_timeout, [&](int r) { return to_string(members.task_of_rank(r)); });
    if (!all) return;
    try {
      connect(*all);
    } catch (const communication_error& e) {  // another process was lost meanwhile
      if (!is_elastic()) throw;
      form_again(e.what());
      s.starts_again = true;
    }
  }

  int rank() const { return state_->now ? state_->now->rank : state_->self.rank; }
  int size() const { return state_->now ? state_->now->size : state_->self.size; }
  int machine_of(int rank) const { return others().machine_of(rank); }
  memory allocate(std::size_t bytes) { return others().allocate(bytes); }
  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    or_first_error([&] { others().send(from, offset, bytes, to); });
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    or_first_error([&] { others().receive(to, offset, bytes, from); });
  }
  void wait(const char* what) {
    or_first_error([&] { others().wait(what); });
  }
  /// For waits on something other than messages. `time()` is the time for their deadlines: it stands while another process does
  /// announced work. `check(what, began)` throws communication_error if a process is lost, or after the timeout.
  std::chrono::steady_clock::time_point time() const { return state_->now->waits->time(); }
  void check(const char* what, std::chrono::steady_clock::time_point began) {
    or_first_error([&] {
      state_->now->waits->throw_if_interrupted();
      const auto timeout = state_->options.communication.timeout;
      if (time() - began > timeout)
        throw communication_error(
            detail::text_of({what, ": process ", rank(), " has waited ", timeout.count(), " ms for another process"}));
    });
  }
  /// Tells the coordinator, which notices when a process waits for a call that another one will never begin.
  void has_begun(const core::shared_call& call) { state_->now->waits->set_calls(call.number); }
  /// Lives during a wait for the end of that call.
  core::wait_state::call_scope await_call(const core::shared_call& call) { return {*state_->now->waits, call}; }
  /// For such a wait: throws communication_error if a process is lost, or if the coordinator has been gone for long.
  void check_call(const core::shared_call& call, std::chrono::steady_clock::time_point began) {
    or_first_error([&] {
      const generation& g = *state_->now;
      g.waits->throw_if_interrupted();
      const heartbeat_options& beats = state_->options.control.heartbeat;
      const auto patience = beats.missed * beats.interval;
      if (call.number > 0 && g.alive && g.alive->ended_for() > patience && std::chrono::steady_clock::now() - began > patience)
        throw communication_error(detail::text_of({"this process, with rank ", g.rank, ", has begun ", g.waits->now().calls,
                                                   " calls on the devices of all processes and waits for ", to_string(call),
                                                   ", but the process of the coordinator at ", to_string(g.client->where()),
                                                   " has left the training: all processes have to compute the same steps"}));
    });
  }
  /// For an error outside of messages that another process may have caused. Throws communication_error: the first error of the
  /// training if it is known, else `what`.
  [[noreturn]] void throw_first_error(const std::string& what) {
    or_first_error([&] { throw communication_error(what); });
    throw communication_error(what);
  }
  mark begun() const { return others().begun(); }
  void wait_received(const char* what, const mark& until) {
    or_first_error([&] { others().wait_received(what, until); });
  }

  /// Values that the workers leave for each other in this generation; null where there is one worker.
  std::shared_ptr<core::key_value_store> values() const { return state_->client; }

  /// Announces to the others an error with which this program may end; empty: it continues.
  void announce_error(const std::string& what) const {
    if (state_->now && state_->now->alive) state_->now->alive->announce_error(what);
  }
  /// Tells the others about work for which they may have to wait, however long it takes; empty: it is done.
  void announce_work(const std::string& what) const {
    if (state_->now && state_->now->alive) state_->now->alive->announce_work(what);
  }

  bool is_elastic() const { return state_->options.elastic.least_workers > 0 && !state_->is_alone; }
  int first_size() const { return state_->self.size; }
  const std::vector<int>& newcomers() const { return state_->newcomers; }
  /// The number of processes that form complete groups: numbers 0 to computing() - 1. The others are spares.
  int computing() const { return state_->computing > 0 ? state_->computing : size(); }
  /// Numbers of those that were spares in the generation before, and lack the newest state of the training.
  const std::vector<int>& lacking() const { return state_->lacking; }
  /// Sets whether this process lacks the newest state of the training, which the coordinator needs to form a generation.
  void set_spare(bool is_spare) { state_->is_spare = is_spare; }
  /// At the chief: true if a process waits to join, or if spares can compute again.
  bool late_one_waits() const { return state_->server && state_->server->late_one_waits(); }
  bool starts_again() const { return state_->starts_again; }
  bool is_late() const { return !state_->now; }

  /// Connects the members of the next generation. Throws communication_error if the training does not continue for this process.
  void form_again(const std::string& why) {
    state& s = *state_;
    const heartbeat_options& beats = s.options.control.heartbeat;
    std::string last = why;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      if (s.now->alive->has_ended()) throw communication_error(s.now->what_was_heard().value_or(last));
      formation all;
      try {
        all = s.client->form_again(
            patience() + beats.missed * beats.interval, [&] { return s.now->waits->time_stands(); }, s.is_spare);
      } catch (const communication_error&) {
        if (const std::string trouble = s.now->waits->trouble(); !trouble.empty()) throw communication_error(trouble);
        throw;
      }
      try {
        return connect(all);
      } catch (const communication_error& e) {  // another process was lost meanwhile
        last = e.what();
      }
    }
    throw communication_error(last);
  }
  /// A late worker joins. Throws communication_error if the others do not take it in.
  void enter() {
    state& s = *state_;
    s.now = nullptr;  // leaves a generation that failed before this worker was up to date
    connect(s.client->enter(s.self, s.options.start_timeout));
  }

 private:
  /// The connections of one generation. All members of a later generation refuse messages of an earlier one.
  struct generation {
    const int rank, size;
    std::shared_ptr<core::wait_state> waits = std::make_shared<core::wait_state>();
    std::shared_ptr<coordinator_client> client;
    std::mutex mutex;  // of the members below
    std::condition_variable has_heard;
    std::optional<std::string> heard;  // why the generation has failed, from the coordinator
    std::unique_ptr<core::between_processes> processes;
    std::unique_ptr<heartbeat> alive;  // is destroyed first

    generation(int r, int n) : rank(r), size(n) {}

    void begin(std::unique_ptr<core::between_processes> connected) {
      const std::lock_guard lock(mutex);
      processes = std::move(connected);
    }
    void interrupt(const std::string& why) {
      const std::lock_guard lock(mutex);
      heard = why;
      has_heard.notify_all();
      waits->interrupt(why);
      if (processes) processes->interrupt(why);
    }
    std::optional<std::string> what_was_heard() {
      std::unique_lock lock(mutex);
      has_heard.wait_for(lock, std::chrono::milliseconds(500), [&] { return heard.has_value(); });
      return heard;
    }
  };
  struct state {
    connection_options options;
    member self;
    bool is_alone = false, encrypts = false;
    std::unique_ptr<coordinator> server;
    std::shared_ptr<coordinator_client> client;  // of the last generation that this process knows
    std::vector<int> newcomers, lacking;
    int computing = 0;  // 0: all
    bool is_spare = false, starts_again = false;
    std::unique_ptr<generation> now;
  };

  static constexpr int most_attempts = 16;

  /// Throws communication_error if this process is in no generation.
  core::between_processes& others() const {
    if (!state_->now || !state_->now->processes)
      throw communication_error("this process is no longer in a generation of the training");
    return *state_->now->processes;
  }

  /// The time that members wait for one that is alive but does not request the next generation: it may be computing.
  std::chrono::milliseconds patience() const { return state_->options.communication.timeout; }

  /// Replaces the current generation, if there is one.
  void connect(const formation& all) {
    state& s = *state_;
    const auto place = std::ranges::find(all.ranks, s.self.rank);
    if (place == all.ranks.end()) throw communication_error("the coordinator has formed a generation without this process");
    if (s.now) s.now->alive->stop();
    s.client = std::make_shared<coordinator_client>(*s.client, all.generation);
    s.newcomers = all.newcomers, s.lacking = all.lacking, s.computing = all.computing;
    auto next = std::make_unique<generation>(int(place - all.ranks.begin()), int(all.ranks.size()));
    generation& g = *next;
    g.client = s.client;
    g.alive = std::make_unique<heartbeat>(*g.client, g.waits, [&g](const std::string& why) { g.interrupt(why); }, is_elastic());
    s.now = std::move(next);  // memory and connections of the former one end here
    or_first_error([&] {
      const auto protection = [&]() -> std::shared_ptr<const detail::socket_protection> {
        if (!s.encrypts) return nullptr;
        return std::make_shared<detail::tls_protection>(key_of_data(g));
      };
      g.begin(std::make_unique<core::between_processes>(*g.client, g.rank, g.size, s.self.host, s.options.communication, g.waits,
                                                        protection));
    });
  }

  /// The key of the messages in a generation, which its rank 0 makes. It travels through the coordinator, over encrypted
  /// connections or within one machine.
  detail::shared_key key_of_data(generation& g) const {
    detail::shared_key key{};
    if (g.rank == 0) {
      if (::RAND_bytes(key.data(), int(key.size())) != 1) throw communication_error("OpenSSL has no random numbers");
      g.client->set("key of data", std::string(reinterpret_cast<const char*>(key.data()), key.size()));
      return key;
    }
    const std::string made = g.client->get("key of data", state_->options.communication.timeout);
    if (made.size() != key.size()) throw communication_error("the coordinator has no key for the connections between workers");
    std::ranges::copy(made, key.begin());
    return key;
  }

  /// One error causes others in other processes. Throws the first one, which the coordinator has.
  template <class F>
  void or_first_error(F&& f) {
    try {
      f();
    } catch (const communication_error& e) {
      generation& g = *state_->now;
      if (!g.client) throw;
      std::string first = g.client->fail(g.waits->culprit(), e.what());
      if (first.empty()) first = g.waits->trouble();
      if (first.empty()) first = g.what_was_heard().value_or("");  // the coordinator may have sent the reason before it ended
      throw communication_error(first.empty() ? e.what() : first);
    }
  }

  std::shared_ptr<state> state_;
};
static_assert(core::elastic_communicator<worker_connections>);

}  // namespace strata::control
