// The logic of a parameter server, without a network: it keeps shards and answers each request of its workers when the staleness
// policy allows.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/control/roster.hpp>
#include <strata/network/leaves.hpp>
#include <strata/parameter_server/contributions.hpp>
#include <strata/parameter_server/parameter_rows.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <strata/parameter_server/staleness.hpp>
#include <strata/parameter_server/stored_shard.hpp>
#include <strata/parameter_server/waiting.hpp>
#include <strata/program/engine_for.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

namespace detail {
/// The reason why a request is refused.
enum class refusal : std::uint8_t {
  none,
  invalid,  // the request makes no sense
  empty,    // the shard has no weights
  fenced,   // its sender never joined, or has been replaced
  stalled,  // a worker that it waits for does not come
};
}  // namespace detail

namespace core {
/// The weights of a shard after `version` updates: all, or the requested runs, one after the other. They do not change while the
/// answer lives.
template <class T>
struct parameter_answer {
  detail::refusal why = detail::refusal::none;
  std::string text{};
  std::int64_t version = -1;
  std::shared_ptr<const T> weights{};
  long count = 0;
  std::vector<double> metric_sums{};  // of all leaves of a synchronous step; with the first shard
};
}  // namespace core

struct parameter_store_options {
  staleness_policy staleness{};
  std::vector<std::string> workers{};  // their names by rank; rank 0 is the chief
  int server = 0;
  std::size_t metric_sums_width = 0;  // metric sums that come with the first shard of a synchronous step
  std::chrono::milliseconds timeout = std::chrono::seconds(60);    // how long one waits for others
  std::chrono::milliseconds lost_after = std::chrono::seconds(4);  // how long a broken connection may take to come back
  std::uint64_t run = 0;                                           // a training that is over is over in its own run only
  std::vector<core::row_table> tables{};                           // tables of which only rows are sent
};

namespace core {
/// Thread-safe: each shard has a lock of its own. An answer may come later and from another thread; no lock is held then.
/// Host: the host_arithmetic that updates parameters and adds gradients.
template <class T, optimizer Optimizer, class Host = host_arithmetic<default_backend>>
class parameter_store {
  using stored = detail::stored_shard<T, Optimizer, Host>;
  using refusal = detail::refusal;

 public:
  using answer = parameter_answer<T>;
  using responder = std::function<void(answer)>;
  using clock = std::chrono::steady_clock;

  parameter_store(Optimizer rules, std::span<const parameter_range> trained, const std::vector<parameter_shard>& shards,
                  parameter_store_options options)
      : rules_(std::move(rules)),
        options_(std::move(options)),
        waiting_rules_(options_.staleness, options_.workers, options_.timeout, options_.lost_after),
        bytes_of_largest_(strata::core::bytes_of_largest(shards, sizeof(T))) {
    for (const parameter_shard& place : shards) {
      shards_.push_back(nullptr);
      if (place.server == options_.server) shards_.back() = std::make_unique<shard>(place, trained, options_, rules_);
    }
  }

  std::size_t workers() const { return options_.workers.size(); }
  /// The number of shards of this server.
  int shards() const {
    return int(std::ranges::count_if(shards_, [](const auto& s) { return s != nullptr; }));
  }
  /// The bytes of the weights of all its shards.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& s : shards_) sum += s ? s->bytes() : 0;
    return sum;
  }
  std::uint64_t run() const { return options_.run; }
  /// Bytes of the largest shard of all servers, but at least largest_shard_bytes.
  std::size_t bytes_of_largest() const { return bytes_of_largest_; }
  /// The largest number of partial gradients in a push.
  int most_parts() const { return is_synchronous(options_.staleness) ? detail::subtrees::most : 1; }

  // Membership.

  /// Returns the number of this connection, which may replace a broken one; -1 for a process that another one has replaced.
  long join(control::member m) {
    m.name = options_.workers[std::size_t(m.rank)];
    long connection = 0;
    {
      const std::lock_guard lock(roster_mutex_);
      const control::roster::entry* const e = roster_.admit(m, clock::now());
      if (!e) return -1;
      connection = e->connections;
    }
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        const std::lock_guard also(roster_mutex_);
        detail::worker_clock& mine = s->clocks[std::size_t(m.rank)];
        const bool is_new = mine.incarnation != m.incarnation && roster_.find(m.rank, m.incarnation);  // not replaced meanwhile
        if (is_new) mine = {m.incarnation, -1, detail::waiting_rules::slowest(s->clocks, roster_, m.rank)};
      }
    return connection;
  }
  void leave(int worker, std::uint64_t incarnation) { depart(worker, incarnation, -1, control::presence::left); }
  /// That connection has ended.
  void lose(int worker, std::uint64_t incarnation, long connection) {
    depart(worker, incarnation, connection, control::presence::lost);
  }

  /// Sets an error with which the worker's program may end; empty: it continues.
  void announce(int worker, std::uint64_t incarnation, std::string trouble) {
    const std::lock_guard lock(roster_mutex_);
    if (control::roster::entry* const e = roster_.find(worker, incarnation)) e->trouble = std::move(trouble);
  }
  /// The reason why the worker has ended, as a message; empty: it has not, or has not given a reason.
  std::string trouble_of(int worker) const {
    const std::lock_guard lock(roster_mutex_);
    return detail::waiting_rules::trouble_of(roster_.find(worker));
  }

  bool chief_has_left() const {
    const std::lock_guard lock(roster_mutex_);
    const control::roster::entry* const chief = roster_.find(0);
    return chief && chief->is == control::presence::left;
  }
  bool has_had_members() const {
    const std::lock_guard lock(roster_mutex_);
    return !roster_.all().empty();
  }
  /// True if all workers have left or are gone for good.
  bool is_deserted() const {
    const auto patience = std::max<std::chrono::milliseconds>(options_.lost_after, std::chrono::seconds(5));
    const auto now = clock::now();
    const std::lock_guard lock(roster_mutex_);
    for (std::size_t w = 0; w < workers(); ++w) {
      const control::roster::entry* const e = roster_.find(int(w));
      if (e ? e->is == control::presence::present || (e->is == control::presence::lost && now - e->heard < patience)
            : now - restored_ < patience)
        return false;
    }
    return !roster_.all().empty();
  }

  // Requests. `key` names a request until it is answered. read(to, bytes) gives the next bytes of its elements.

  /// The chief assigns weights: the initial ones, which a shard with weights ignores, or others from now on.
  answer assign(int worker, std::uint64_t incarnation, std::uint32_t number, bool initial, std::size_t bytes, auto&& read) {
    shard* s = find(number);
    if (!s) return refuse_shard(number);
    if (worker != 0) return refuse(refusal::invalid, detail::text_of({"only ", options_.workers[0], " assigns weights"}));
    if (!is_current(worker, incarnation)) return fenced(worker);
    if (bytes != s->bytes()) return refuse_size(number, bytes, s->bytes());
    std::vector<ready> answers;
    {
      const std::lock_guard lock(s->mutex);
      if (s->version() < 0 || !initial) {
        read(s->overwrite().data(), bytes);
        ++changes_;
      }
      take_ready(*s, answers);
    }
    answer_all(answers);
    return {};
  }

  /// Waits for the first weights. A worker that had some does not wait, because the server has lost them.
  void pull(int worker, std::uint64_t incarnation, std::uint32_t number, bool had_weights, const void* key, responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse_shard(number));
    if (!is_current(worker, incarnation)) return respond(fenced(worker));
    if (had_weights && !has_weights(*s)) return respond(refuse(refusal::empty, lost_weights(number)));
    wait(*s, {{worker, -1, clock::now()}, key, std::move(respond)});
  }

  /// Some rows of tables, for a worker that has had weights. `rows` are in ascending order, each once.
  void pull_rows(int worker, std::uint64_t incarnation, std::uint32_t number, std::span<const std::uint32_t> rows,
                 const void* key, responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse_shard(number));
    if (!is_current(worker, incarnation)) return respond(fenced(worker));
    if (std::string wrong = s->contents().what_is_wrong(rows); !wrong.empty())
      return respond(refuse(refusal::invalid, std::move(wrong)));
    if (!has_weights(*s)) return respond(refuse(refusal::empty, lost_weights(number)));
    wait(*s, {{worker, -1, clock::now()}, key, std::move(respond), true, s->contents().pieces_of(rows)});
  }

  /// Applies a gradient unless it was applied before, and answers with the weights as soon as the worker may continue. In a shard
  /// with tables, the gradient is zero in rows that are not in the push, and the answer has only the rest.
  void push(push_request p, std::uint32_t number, const void* key, std::size_t bytes, auto&& read, responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse_shard(number));
    if (!is_current(p.worker, p.incarnation)) return respond(fenced(p.worker));
    if (p.step < 0 || p.samples < 1 || p.leaves < 1 || p.leaves > max_leaves || !std::isfinite(p.learning_rate))
      return respond(refuse(refusal::invalid, detail::text_of({"a push of step ", p.step, " with ", p.samples, " samples in ",
                                                               p.leaves, " leaves and learning rate ", p.learning_rate})));
    if (std::string wrong = s->contents().what_is_wrong(p.rows); !wrong.empty())
      return respond(refuse(refusal::invalid, std::move(wrong)));
    const std::vector<element_run> pieces = s->contents().pieces_of(p.rows);
    request r{{p.worker, p.step, clock::now()}, key, std::move(respond), s->contents().has_tables()};
    if (r.is_partial) r.runs.assign(s->contents().rest().begin(), s->contents().rest().end());
    answer problem;
    {
      const std::lock_guard lock(s->mutex);
      if (s->version() < 0)
        problem = refuse(refusal::empty, detail::text_of({"a gradient for shard ", number, ", which has no weights"}));
      else if (is_synchronous(options_.staleness))
        problem = collect(*s, std::move(p), number, bytes, read, pieces);
      else
        problem = apply_once(*s, p, number, bytes, read, pieces);
    }
    if (problem.why != refusal::none) return r.respond(std::move(problem));
    wait(*s, std::move(r));
  }

  /// Drops a request. Returns true if it was waiting; then it will not be answered.
  bool forget(std::uint32_t number, const void* key) {
    shard* s = find(number);
    if (!s) return false;
    const std::lock_guard lock(s->mutex);
    return std::erase_if(s->waiting, [&](const request& r) { return r.key == key; }) > 0;
  }

  /// Ends requests that wait to no purpose. To be called several times per second.
  void tick() {
    const auto now = clock::now();
    {
      const std::lock_guard lock(roster_mutex_);
      for (auto& [rank, e] : roster_.all())
        if (e.is == control::presence::present && !e.is_connected && now - e.heard > options_.timeout)
          e.is = control::presence::lost, e.heard = now;
    }
    std::vector<ready> answers;
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        take_ready(*s, answers);
        for (std::size_t i = s->waiting.size(); i-- > 0;)
          if (std::string why = futile(*s, s->waiting[i], now); !why.empty())
            answers.push_back({take(*s, i), refuse(refusal::stalled, std::move(why))});
      }
    answer_all(answers);
  }
  /// Ends all requests that wait.
  void close() {
    std::vector<ready> answers;
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        for (request& r : s->waiting) answers.push_back({std::move(r.respond), refuse(refusal::stalled, "the training is over")});
        s->waiting.clear();
      }
    answer_all(answers);
  }

  // For snapshots.

  /// Changes of all shards since this server began.
  long changes() const { return changes_; }
  /// Calls f(number, shard, clocks, metric sums) for each shard of this server while it is locked, then `after()` when it is not.
  template <class F, class After>
  void for_each_shard(F&& f, After&& after) const {
    for (std::size_t k = 0; k < shards_.size(); ++k)
      if (shards_[k]) {
        {
          const std::lock_guard lock(shards_[k]->mutex);
          f(k, std::as_const(*shards_[k]).values(), std::as_const(shards_[k]->clocks), std::as_const(shards_[k]->metric_sums));
        }
        after();
      }
  }
  template <class F>
  void for_each_shard(F&& f) {
    for (std::size_t k = 0; k < shards_.size(); ++k)
      if (shards_[k]) {
        const std::lock_guard lock(shards_[k]->mutex);
        f(k, shards_[k]->values(), shards_[k]->clocks, shards_[k]->metric_sums);
      }
  }
  /// The snapshot of a training whose chief had left. Other workers may still train, and join again.
  void restore_as_over() {
    const std::lock_guard lock(roster_mutex_);
    restored_ = clock::now();
    control::roster::leave(*roster_.admit({.rank = 0, .name = options_.workers[0]}, restored_), restored_);
  }

 private:
  struct request : detail::waiting_request {
    request(detail::waiting_request of, const void* its_key, responder responds, bool partial = false,
            std::vector<element_run> wanted = {})
        : waiting_request(of), key(its_key), respond(std::move(responds)), is_partial(partial), runs(std::move(wanted)) {}
    const void* key;
    responder respond;
    bool is_partial;  // wants `runs`, not all
    std::vector<element_run> runs;
  };
  struct ready {
    responder respond;
    answer with;
  };
  static void answer_all(std::vector<ready>& answers) {
    for (auto& [respond, with] : answers) respond(std::move(with));
  }
  struct shard : stored {
    shard(const parameter_shard& place, std::span<const parameter_range> trained, const parameter_store_options& options,
          const Optimizer& rules)
        : stored(place, trained, options.tables, rules),
          clocks(options.workers.size()),
          pushed(options.workers.size(), place.size(), place.begin == 0 ? options.metric_sums_width : 0) {}
    stored& values() { return *this; }
    const stored& values() const { return *this; }

    mutable std::mutex mutex{};
    std::vector<detail::worker_clock> clocks;
    detail::single_contribution<T> single{};  // of an asynchronous step
    detail::contributions<T, Host> pushed;    // of a synchronous step
    std::vector<double> metric_sums{};        // of the last synchronous step
    std::vector<request> waiting{};
  };

  static answer refuse(refusal why, std::string text) {
    answer a;
    a.why = why, a.text = std::move(text);
    return a;
  }
  answer refuse_shard(std::uint32_t number) const {
    return refuse(refusal::invalid, detail::text_of({"server ", options_.server, " has no shard ", number}));
  }
  static answer refuse_size(std::uint32_t number, std::size_t bytes, std::size_t expected) {
    return refuse(refusal::invalid, detail::text_of({bytes, " bytes for shard ", number, " instead of ", expected}));
  }
  answer refuse_gradient(int worker, std::int64_t step, std::uint32_t number) const {
    const std::lock_guard lock(roster_mutex_);
    return refuse(refusal::invalid, detail::text_of({"the gradient of ", waiting_rules_.name_of(worker, roster_), " for shard ",
                                                     number, " in step ", step, " has nan or infinity, and is not applied"}));
  }
  static std::string lost_weights(std::uint32_t number) { return detail::text_of({"shard ", number, " no longer has weights"}); }
  answer fenced(int worker) const {
    const bool is_known = worker >= 0 && std::size_t(worker) < workers();
    return refuse(refusal::fenced,
                  detail::text_of({is_known ? options_.workers[std::size_t(worker)] : detail::text_of({"rank ", worker}),
                                   " has not joined, or has been replaced by another process"}));
  }
  shard* find(std::uint32_t number) const { return number < shards_.size() ? shards_[number].get() : nullptr; }
  static bool has_weights(const shard& s) {
    const std::lock_guard lock(s.mutex);
    return s.version() >= 0;
  }

  /// Records that the worker is alive: every request is a sign of life.
  bool is_current(int worker, std::uint64_t incarnation) {
    const std::lock_guard lock(roster_mutex_);
    control::roster::entry* const e = roster_.find(worker, incarnation);
    if (!e || e->is == control::presence::left) return false;
    control::roster::hear(*e, clock::now());
    return true;
  }
  void depart(int worker, std::uint64_t incarnation, long connection, control::presence to) {
    {
      const std::lock_guard lock(roster_mutex_);
      control::roster::entry* const e = roster_.find(worker, incarnation);
      if (!e || e->is == control::presence::left) return;
      if (connection >= 0 && connection != e->connections) return;
      e->is = to, e->is_connected = false, e->heard = clock::now();
    }
    tick();
  }

  answer current(const shard& s, const request& r) const {
    answer a;
    a.version = s.version();
    a.weights = r.is_partial ? s.copy(r.runs) : s.lend();
    a.count = r.is_partial ? count_elements(r.runs) : s.place().size();
    if (r.step >= 0) a.metric_sums = s.metric_sums;
    return a;
  }

  answer apply_once(shard& s, const push_request& p, std::uint32_t number, std::size_t bytes, auto& read,
                    std::span<const element_run> pieces) {
    if (const auto expected = detail::gradient_bytes<T>(s.contents(), pieces); bytes != expected)
      return refuse_size(number, bytes, expected);
    detail::worker_clock& mine = s.clocks[std::size_t(p.worker)];
    if (mine.incarnation != p.incarnation) return fenced(p.worker);
    if (p.step <= mine.last_step) return {};
    const auto gradient = s.single.receive(p, s.place().size(), s.contents(), pieces, read);
    if (!s.single.is_finite()) {
      s.single.clear(pieces);
      return refuse_gradient(p.worker, p.step, number);
    }
    s.apply(gradient, s.contents().slices_around({pieces.begin(), pieces.end()}), p.learning_rate);
    ++changes_;
    s.single.clear(pieces);
    mine.last_step = p.step;
    ++mine.progress;
    return {};
  }

  answer collect(shard& s, push_request p, std::uint32_t number, std::size_t bytes, auto& read, std::vector<element_run> pieces) {
    const std::string& name = options_.workers[std::size_t(p.worker)];
    if (const auto expected = s.pushed.bytes_of(p, s.contents(), pieces); bytes != expected)
      return refuse_size(number, bytes, expected);
    if (const auto expected = s.pushed.metric_sums_of(p); p.metric_sums.size() != expected)
      return refuse(refusal::invalid,
                    detail::text_of({p.metric_sums.size(), " metric sums for shard ", number, " instead of ", expected}));
    if (p.step == s.version() - 1) return {};  // applied before
    if (p.step != s.version())
      return refuse(refusal::invalid,
                    detail::text_of({name, " pushes step ", p.step, ", but the servers are at step ", s.version()}));
    if (s.pushed.has(std::size_t(p.worker))) return {};
    if (const int other = s.pushed.disagrees(p); other >= 0)
      return refuse(refusal::invalid,
                    detail::text_of({name, " and ", options_.workers[std::size_t(other)],
                                     " do not read the same batches: ", p.samples, " and ", s.pushed.samples(), " samples in ",
                                     p.leaves, " and ", s.pushed.leaves(), " leaves in step ", p.step}));
    const int worker = p.worker;
    if (!s.pushed.add(std::move(p), s.contents(), std::move(pieces), read)) return refuse_gradient(worker, s.version(), number);
    if (!s.pushed.are_complete()) return {};
    const typename Host::scope scope;
    s.metric_sums = s.pushed.sum(s.contents(), [&](const auto& gradient, std::span<const element_run> slices, double rate) {
      s.apply(gradient, slices, rate);
    });
    ++changes_;
    return {};
  }

  bool may_go_on(const shard& s, const request& r) const {
    const std::lock_guard lock(roster_mutex_);
    return waiting_rules_.may_go_on(r, s.version(), s.clocks, roster_);
  }
  std::string futile(const shard& s, const request& r, clock::time_point now) const {
    const std::lock_guard lock(roster_mutex_);
    return waiting_rules_.futile(r, s.version(), s.clocks, roster_, [&](std::size_t w) { return s.pushed.has(w); }, now);
  }
  void wait(shard& s, request r) {
    std::vector<ready> answers;
    {
      const std::lock_guard lock(s.mutex);
      s.waiting.push_back(std::move(r));
      take_ready(s, answers);
    }
    answer_all(answers);
  }
  void take_ready(shard& s, std::vector<ready>& answers) {
    for (std::size_t i = s.waiting.size(); i-- > 0;) {
      if (!may_go_on(s, s.waiting[i])) continue;
      answer a = current(s, s.waiting[i]);
      answers.push_back({take(s, i), std::move(a)});
    }
  }
  static responder take(shard& s, std::size_t i) {
    responder respond = std::move(s.waiting[i].respond);
    s.waiting.erase(s.waiting.begin() + std::ptrdiff_t(i));
    return respond;
  }

  Optimizer rules_;
  parameter_store_options options_;
  detail::waiting_rules waiting_rules_;
  std::size_t bytes_of_largest_;
  std::vector<std::unique_ptr<shard>> shards_;  // by number; nullptr where another server has the shard
  mutable std::mutex roster_mutex_;             // may be taken while a shard is locked, never the other way round
  control::roster roster_;
  clock::time_point restored_{};
  std::atomic<long> changes_ = 0;
};
}  // namespace core

}  // namespace strata
