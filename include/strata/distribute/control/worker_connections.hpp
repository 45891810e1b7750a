// The connections of one worker of a synchronous training: to the coordinator, and to the other workers. Needs gRPC.
// needs: grpc
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/distribute/cluster.hpp>
#include <strata/distribute/communicators/between_processes.hpp>
#include <strata/distribute/control/coordinator.hpp>
#include <strata/distribute/control/coordinator_client.hpp>
#include <strata/distribute/control/heartbeat.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/elastic.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// What a strategy has been told of connections.
struct connection_options {
  communication_options communication{};
  control_options control{};
  elastic_options elastic{};
  std::chrono::milliseconds start_timeout{};  // until all workers are there, or a late one is taken in
};

/// A communicator between the workers of a cluster; the chief's keeps the coordinator alive as well. Copies are the same
/// connections. With elastic options it survives its generation, and a worker that comes late waits until it may enter.
class worker_connections {
 public:
  using memory = between_processes::memory;
  using mark = between_processes::mark;

  /// `program` says what is trained: all workers have to say the same. Throws communication_error if a worker does not come, or
  /// trains something else, and strata::error for elastic options that make no sense.
  worker_connections(const cluster& members, const std::string& program, const connection_options& options)
      : state_(std::make_shared<state>()) {
    state& s = *state_;
    s.options = options;
    s.self.rank = members.rank(), s.self.size = members.size();
    const int least = options.elastic.least_workers;
    if (least < 0 || least > s.self.size)
      throw error("elastic_options: least_workers is " + std::to_string(least) + ", but the cluster has " +
                  std::to_string(s.self.size) + " workers");
    if (least > 0 && options.communication.implementation == communication_implementation::mpi)
      throw error("elastic_options: MPI ends all processes when one of them dies; leave communication_options.implementation as it is");
    if (s.self.size == 1) {
      s.is_alone = true;
      in_process_store store;
      s.now = std::make_unique<generation>(0, 1);
      s.now->processes = std::make_unique<between_processes>(store, 0, 1, "", options.communication);
      return;
    }
    // Who has not been given the name of the run may still belong to it: whether all mean the same cluster is told below.
    const std::string run = members.has_named_run() ? members.run_id() : "";
    const auto own = members.address(members.task());
    s.self.name = to_string(members.task()), s.self.host = own ? own->host : "127.0.0.1", s.self.pid = int(::getpid());
    s.self.agreement = "cluster " + to_string(members.spec()) + "; " + program;
    if (is_elastic()) s.self.agreement += "; elastic from " + std::to_string(least) + " workers on";
    if (members.is_chief())
      s.server = std::make_unique<coordinator>(members.coordinator(), run, options.control, members.generation(),
                                               options.elastic, patience(), s.self.size);
    s.client = std::make_shared<coordinator_client>(members.coordinator(), run, options.control, members.generation());
    const auto all = s.client->join(s.self, options.start_timeout, [&](int r) { return to_string(members.task_of_rank(r)); });
    if (all) connect(*all);
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
  mark begun() const { return others().begun(); }
  void wait_received(const char* what, const mark& until) {
    or_first_error([&] { others().wait_received(what, until); });
  }

  bool is_elastic() const { return state_->options.elastic.least_workers > 0 && !state_->is_alone; }
  int first_size() const { return state_->self.size; }
  const std::vector<int>& newcomers() const { return state_->newcomers; }
  bool late_one_waits() const { return state_->server && state_->server->late_one_waits(); }
  bool is_late() const { return !state_->now; }

  /// Throws communication_error if the training does not go on, for this process: `why`, if the coordinator is lost.
  void form_again(const std::string& why) {
    state& s = *state_;
    const heartbeat_options& beats = s.options.control.heartbeat;
    std::string last = why;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      if (s.now->alive->has_ended()) throw communication_error(s.now->what_was_heard().value_or(last));
      const formation all = s.client->form_again(patience() + beats.missed * beats.interval);
      try {
        return connect(all);
      } catch (const communication_error& e) {  // another one is lost
        last = e.what();
      }
    }
    throw communication_error(last);
  }
  /// Throws communication_error if the others do not take it in.
  void enter() {
    state& s = *state_;
    s.now = nullptr;  // leaves, if it was in a generation that failed before it knew what the others know
    connect(s.client->enter(s.self, s.options.start_timeout));
  }

 private:
  /// Who is connected as long as nobody is lost. What refers to an earlier one is refused by all of a later one.
  struct generation {
    const int rank, size;
    std::shared_ptr<wait_state> waits = std::make_shared<wait_state>();
    std::shared_ptr<coordinator_client> client;
    std::mutex mutex;  // of what follows
    std::condition_variable has_heard;
    std::optional<std::string> heard;  // from the coordinator: why the generation has failed
    std::unique_ptr<between_processes> processes;
    std::unique_ptr<heartbeat> alive;  // ends first

    generation(int rank, int size) : rank(rank), size(size) {}

    void begin(std::unique_ptr<between_processes> connected) {
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
    bool is_alone = false;
    std::unique_ptr<coordinator> server;
    std::shared_ptr<coordinator_client> client;  // of the generation that this process has heard of last
    std::vector<int> newcomers;
    std::unique_ptr<generation> now;
  };

  static constexpr int most_attempts = 16;

  /// Throws communication_error if this process has been left without any.
  between_processes& others() const {
    if (!state_->now || !state_->now->processes)
      throw communication_error("this process is in no generation of the training any more");
    return *state_->now->processes;
  }

  /// How long those that have come wait for one that is alive: it may be computing.
  std::chrono::milliseconds patience() const { return state_->options.communication.timeout; }

  /// Takes the place of the generation before, if there is one.
  void connect(const formation& all) {
    state& s = *state_;
    const auto place = std::ranges::find(all.ranks, s.self.rank);
    if (place == all.ranks.end()) throw communication_error("the coordinator has formed a generation without this process");
    if (s.now) s.now->alive->stop();
    s.client = std::make_shared<coordinator_client>(*s.client, all.generation);
    s.newcomers = all.newcomers;
    auto next = std::make_unique<generation>(int(place - all.ranks.begin()), int(all.ranks.size()));
    generation& g = *next;
    g.client = s.client;
    g.alive = std::make_unique<heartbeat>(*g.client, g.waits, [&g](const std::string& why) { g.interrupt(why); }, is_elastic());
    s.now = std::move(next);  // memory and connections of the one before end here
    or_first_error([&] {
      g.begin(std::make_unique<between_processes>(*g.client, g.rank, g.size, s.self.host, s.options.communication, g.waits));
    });
  }

  /// Errors of several processes follow from each other: the coordinator knows which came first.
  template <class F>
  void or_first_error(F&& f) {
    try {
      f();
    } catch (const communication_error& e) {
      generation& g = *state_->now;
      if (!g.client) throw;
      std::string first = g.client->fail(g.waits->culprit(), e.what());
      if (first.empty()) first = g.what_was_heard().value_or("");  // the coordinator may have told it and ended
      throw communication_error(first.empty() ? e.what() : first);
    }
  }

  std::shared_ptr<state> state_;
};
static_assert(elastic_communicator<worker_connections>);

}  // namespace strata
