// A worker's connections to all parameter servers. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <strata/base/stopwatch.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/control/server_connection.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <strata/net/message_connection.hpp>
#include <strata/net/random_token.hpp>
#include <strata/parameter_server/parameter_executor.hpp>
#include <strata/parameter_server/parameter_messages.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <strata/parameter_server/server_session.hpp>
#include <strata/resolvers/cluster.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

struct parameter_client_options {
  int worker = 0, workers = 1;  // rank and size
  bool synchronous = false;
  std::size_t metric_sums_width = 0;  // as in parameter_store_options
  std::string run{}, program{};       // must be those of the servers
  std::uint64_t generation = 0;       // of the run; likewise
  control_options control{};
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::chrono::milliseconds retry_for = std::chrono::seconds(3);
  std::vector<core::row_table> tables{};  // as in parameter_store_options
};

namespace core {
/// Pushes and pulls all shards at the same time, one message per shard. A call whose server is unavailable is repeated for
/// `retry_for`; then communication_error has the name of the server. It also has a server's reports about other workers.
template <class T>
class parameter_client {
  using clock = std::chrono::steady_clock;
  using methods = detail::parameter_methods;
  struct server {
    endpoint where;
    std::unique_ptr<detail::server_connection> connection;
    std::unique_ptr<detail::server_session> session{};  // ends before its connection
  };
  struct call {
    std::size_t shard;
    detail::reply end{};
    long joins = 0;  // of the session, when the call was made
    std::optional<clock::time_point> unavailable_since{}, empty_since{};
  };

  std::vector<server> servers_;
  std::vector<parameter_shard> shards_;
  parameter_client_options options_;
  std::vector<shard_contents> contents_;
  wire::sender self_;
  bool has_weights_ = false;  // of the servers
  std::string announced_;     // the last error
  double calling_ = 0, waiting_ = 0;

 public:
  /// Joins all servers. Throws communication_error if one does not answer in time, strata_error if it serves another
  /// training.
  parameter_client(const std::vector<endpoint>& servers, std::vector<parameter_shard> shards, parameter_client_options options)
      : shards_(std::move(shards)), options_(std::move(options)), contents_(contents_of(shards_, options_.tables)) {
    self_ = {
        .run = options_.run, .generation = options_.generation, .rank = options_.worker, .incarnation = detail::random_token()};
    const control::member self{.rank = options_.worker,
                               .size = options_.workers,
                               .host = own_host(),
                               .pid = int(::getpid()),
                               .incarnation = self_.incarnation,
                               .agreement = options_.program};
    for (const endpoint& where : servers)
      servers_.push_back({where, std::make_unique<detail::server_connection>(where, options_.control,
                                                                             2 * bytes_of_largest(shards_, sizeof(T)))});
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      servers_[s].session =
          std::make_unique<detail::server_session>(name_of(s), *servers_[s].connection, self_, self, options_.retry_for);
      servers_[s].session->join(options_.start_timeout, options_.control.on_waiting);
    }
  }
  parameter_client(parameter_client&&) = default;
  parameter_client& operator=(parameter_client&&) = delete;

  int rank() const { return options_.worker; }
  int size() const { return options_.workers; }
  bool is_synchronous() const { return options_.synchronous; }
  double communicating() const { return calling_ - waiting_; }
  double waiting() const { return waiting_; }

  void assign(const T* weights, bool initial) {
    for_all_shards(
        methods::assign, [&](std::size_t k) { return assignment(k, weights, initial); },
        [](std::size_t, const detail::weights_answer&, wire::envelope&) {});
  }

  /// Throws strata_error if the training is synchronous and a shard is not at `step`: the gradients would be ignored.
  long pull(T* weights, std::int64_t step) {
    std::vector<std::int64_t> versions(shards_.size());
    const auto message = [&](std::size_t k) {
      return wire::sealed(self_, detail::pull_message{.shard = std::uint32_t(k), .had_weights = has_weights_});
    };
    for_all_shards(
        methods::pull, message,
        [&](std::size_t k, const detail::weights_answer& answer, wire::envelope& received) {
          const element_run all{0, shards_[k].size()};
          take(k, {&all, 1}, received, weights);
          versions[k] = answer.version;
        },
        has_weights_ ? weights : nullptr);
    has_weights_ = true;
    if (options_.synchronous) refuse_other_steps(versions, step);
    return long(versions[0]);
  }

  /// Asks only the shards that have any of the rows.
  void pull_rows(std::span<const std::uint32_t> rows, T* weights) {
    std::vector<std::size_t> some;
    for (std::size_t k = 0; k < shards_.size(); ++k)
      if (contents_[k].has_any(rows)) some.push_back(k);
    const auto message = [&](std::size_t k) {
      return wire::sealed(
          self_, detail::pull_message{
                     .shard = std::uint32_t(k), .had_weights = true, .wants_rows = true, .rows = contents_[k].rows_among(rows)});
    };
    const auto take_pieces = [&](std::size_t k, const detail::weights_answer&, wire::envelope& received) {
      take(k, contents_[k].pieces_of(rows), received, weights);
    };
    const detail::stopwatch running(calling_);
    for_shards(some, methods::pull, message, take_pieces, weights);
  }

  long push(pushed_gradient<T>& g, T* weights) {
    long updates = 0;
    const auto message = [&](std::size_t k) {
      detail::push_message m{.shard = std::uint32_t(k),
                             .step = g.step,
                             .learning_rate = g.learning_rate,
                             .samples = g.samples,
                             .leaves = g.leaves,
                             .rows = contents_[k].rows_among(g.rows)};
      if (k == 0) m.metric_sums = g.metric_sums;
      std::vector<wire::shared_bytes> elements;
      for (int part = 0; part < g.parts; ++part) elements.push_back(gradient_of(k, g, part));
      return wire::sealed(self_, m, std::move(elements));
    };
    std::vector<double> metric_sums(options_.synchronous ? std::size_t(g.leaves) * options_.metric_sums_width : 0);
    for_all_shards(
        methods::push, message,
        [&](std::size_t k, const detail::weights_answer& answer, wire::envelope& received) {
          take(k, contents_[k].rest(), received, weights);
          if (k > 0) return;
          updates = long(answer.version);
          if (answer.metric_sums.size() != metric_sums.size())
            throw communication_error(
                detail::text_of({name_of(std::size_t(shards_[k].server)), " answers with ", answer.metric_sums.size(),
                                 " metric sums instead of ", metric_sums.size()}));
          metric_sums = answer.metric_sums;
        },
        weights);
    g.metric_sums = std::move(metric_sums);
    return updates;
  }

  /// Announces to the servers an error with which this program may end; empty: it continues.
  void announce_error(const std::string& what) {
    if (what == announced_) return;
    announced_ = what;
    for (const server& s : servers_) s.session->announce_error(what);
  }

 private:
  std::size_t bytes_of(std::size_t shard) const { return std::size_t(shards_[shard].size()) * sizeof(T); }
  static std::string own_host() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "an unknown host";
  }
  std::string name_of(std::size_t s) const {
    return detail::text_of({to_string(cluster_task{role::ps, int(s)}), " at ", to_string(servers_[s].where)});
  }

  void refuse_other_steps(std::span<const std::int64_t> versions, std::int64_t step) const {
    const auto shard = [&](std::size_t k) {
      return detail::text_of({"shard ", k, " of ", name_of(std::size_t(shards_[k].server)), " is at step ", versions[k]});
    };
    for (std::size_t k = 1; k < versions.size(); ++k)
      if (versions[k] != versions[0])
        throw_error(
            {shard(k), ", but ", shard(0),
             ": a synchronous training cannot continue from snapshots of different steps. Delete those of all servers and "
             "train again, or from weights that the program has saved"});
    if (versions[0] == 0 && step > 0)
      throw_error({shard(0), ", but this worker is at step ", step,
                   ": the servers start without snapshots of that step. Start all workers at step 0, without "
                   "executor().set_step; the chief may load weights that it has saved"});
    if (versions[0] != step)
      throw_error({shard(0), ", but this worker is at step ", step,
                   ": a synchronous training continues from the step of its servers. Resume all workers at that step, with "
                   "executor().set_step and initial_epoch, or delete the snapshots of all servers"});
  }

  wire::sealed_message assignment(std::size_t k, const T* weights, bool initial) const {
    const T* const begin = weights + shards_[k].begin;
    const auto copy = std::make_shared<const std::vector<T>>(begin, begin + shards_[k].size());
    return wire::sealed(self_, detail::assign_message{.shard = std::uint32_t(k), .is_initial = initial},
                        {wire::shared_array(copy, copy->data(), copy->size())});
  }
  wire::shared_bytes gradient_of(std::size_t k, const pushed_gradient<T>& g, int part) const {
    const T* const begin = g.sums->data() + part * g.stride + shards_[k].begin;
    if (!contents_[k].has_tables()) return wire::shared_array(g.sums, begin, std::size_t(shards_[k].size()));
    std::vector<element_run> runs = contents_[k].pieces_of(g.rows);
    runs.insert(runs.begin(), contents_[k].rest().begin(), contents_[k].rest().end());
    const auto count = std::size_t(count_elements(runs));
    const auto copy = std::make_shared<T[]>(count);
    detail::pack(begin, runs, copy.get());
    return wire::shared_array(copy, copy.get(), count);
  }
  void take(std::size_t k, std::span<const element_run> runs, wire::envelope& received, T* weights) const {
    const std::size_t expected = std::size_t(count_elements(runs)) * sizeof(T);
    if (received.left() != expected)
      throw communication_error(detail::text_of({name_of(std::size_t(shards_[k].server)), " answers with ", received.left(),
                                                 " bytes for shard ", k, " instead of ", expected}));
    for (const element_run& r : runs) received.read(weights + shards_[k].begin + r.begin, std::size_t(r.size()) * sizeof(T));
  }

  /// Calls a method for each shard, all at the same time. message(shard) makes the request, take(shard, answer, envelope)
  /// receives the answer. The chief sends `weights` to a server that was restarted and has none.
  template <class Message, class Take>
  void for_all_shards(const char* method, Message&& message, Take&& take, const T* weights = nullptr) {
    std::vector<std::size_t> all(shards_.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    const detail::stopwatch running(calling_);
    for_shards(all, method, message, take, weights);
  }
  template <class Message, class Take>
  void for_shards(std::span<const std::size_t> some, const char* method, Message&& message, Take&& take, const T* weights) {
    detail::calls_of_thread under_way;
    std::vector<call> calls(some.size());
    const auto start = [&](std::size_t k) {
      call& c = calls[k];
      const auto session = server_of(c).session.get();
      c.joins = session->joins();
      // The server reports a time-out before this deadline; without a connection each attempt fails at once.
      under_way.begin(session->connection(), method, message(c.shard), clock::now() + options_.timeout + std::chrono::seconds(5),
                      k);
    };
    for (std::size_t k = 0; k < calls.size(); ++k) {
      calls[k].shard = some[k];
      start(k);
    }
    while (!under_way.empty()) {
      std::optional<detail::ended_call> ended;
      {
        const detail::stopwatch until_an_answer(waiting_);
        ended = under_way.next();
      }
      call& c = calls[ended->tag];
      c.end = std::move(ended->end);
      if (c.end.status.ok())
        read_answer(c, take);
      else if (is_worth_a_retry(c, weights))
        start(ended->tag);
      else
        complain(c);
    }
  }

  template <class Take>
  void read_answer(const call& c, Take&& take) const try {
    wire::envelope received(c.end.frame.content());
    take(c.shard, received.body<detail::weights_answer>(), received);
  } catch (const wire::malformed_message& e) {
    throw communication_error(detail::text_of({name_of(c), " sent a ", e.what()}));
  }

  server& server_of(const call& c) { return servers_[std::size_t(shards_[c.shard].server)]; }
  std::string name_of(const call& c) const { return name_of(std::size_t(shards_[c.shard].server)); }

  bool is_worth_a_retry(call& c, const T* weights) {
    using namespace std::chrono_literals;
    const auto lasts = [](std::optional<clock::time_point>& since) {
      if (!since) since = clock::now();
      return clock::now() - *since;
    };
    const auto has_joined_again = [&] {
      const detail::stopwatch until_it_is_back(waiting_);
      return server_of(c).session->has_joined_again(c.joins, 200ms);
    };
    if (c.end.status.code != detail::status_code::unavailable) c.unavailable_since.reset();
    switch (c.end.status.code) {
      case detail::status_code::unavailable:
        if (has_joined_again()) return c.unavailable_since.reset(), true;
        return lasts(c.unavailable_since) < options_.retry_for;
      case detail::status_code::failed_precondition:  // a restarted server knows no worker yet
        return has_joined_again();
      case detail::status_code::not_found:  // the server has no weights
        if (!weights || options_.synchronous) return false;
        if (options_.worker != 0) {
          const detail::stopwatch until_the_chief_assigns(waiting_);
          std::this_thread::sleep_for(20ms);
          return lasts(c.empty_since) < options_.timeout;
        }
        std::clog << detail::text_of(
            {name_of(c), " was restarted without a snapshot: shard ", c.shard,
             " continues with the weights of this process and a new optimizer, whose updates count from 0\n"});
        for_shards(
            std::span(&c.shard, 1), methods::assign, [&](std::size_t k) { return assignment(k, weights, true); },
            [](std::size_t, const detail::weights_answer&, wire::envelope&) {}, nullptr);
        return true;
      default:
        return false;
    }
  }
  [[noreturn]] void complain(const call& c) const {
    const std::string who = name_of(c);
    switch (c.end.status.code) {
      case detail::status_code::aborted:
        throw communication_error(c.end.status.text);
      case detail::status_code::unavailable:
        throw communication_error(detail::text_of({who, " is gone: ", c.end.status.text}));
      case detail::status_code::deadline_exceeded:
        throw communication_error(detail::text_of({who, " does not answer"}));
      default:
        throw communication_error(detail::text_of({who, " refuses the request: ", c.end.status.text}));
    }
  }
};
}  // namespace core

}  // namespace strata
