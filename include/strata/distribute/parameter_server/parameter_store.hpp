// What a parameter server keeps: its shards of weights and optimizer state, and who may go on when. It knows no network.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <strata/base/arena.hpp>
#include <strata/cpu/update.hpp>
#include <strata/distribute/leaves/leaf_share.hpp>
#include <strata/distribute/leaves/team.hpp>
#include <strata/distribute/parameter_server/parameter_rows.hpp>
#include <strata/distribute/parameter_server/parameter_shards.hpp>
#include <strata/distribute/parameter_server/staleness.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

/// Why a request is not fulfilled.
enum class refusal : std::uint8_t {
  none,
  invalid,  // it makes no sense
  empty,    // there are no weights that it could change
  fenced,   // its sender has been replaced, or never joined
  stalled,  // somebody it waits for does not come
};

/// The weights of one shard, as they were after `version` updates, or those of them that were asked for, one behind the other.
/// They stay so while the answer lives.
template <class T>
struct parameter_answer {
  refusal why = refusal::none;
  std::string text{};
  long version = -1;
  std::shared_ptr<const T> weights{};
  long count = 0;
  std::vector<double> tallies{};  // of all leaves of a synchronous step; with the first shard
};

/// Which gradient it is: (worker, incarnation, step) is applied once to a shard, however often it comes.
struct push_request {
  int worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;
  double learning_rate = 0;
  int samples = 0;  // of the batch: the global one of a synchronous step
  int leaves = 1;   // of the global batch of a synchronous step
};

struct parameter_store_options {
  staleness_policy staleness{};
  std::vector<std::string> workers{};  // their names; the first one leads
  int server = 0;
  std::size_t tally_width = 0;         // numbers per leaf that come with the first shard of a synchronous step
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // how long one waits for others
  std::chrono::milliseconds lost_after = std::chrono::seconds(4);  // a broken connection may be mended in between
  std::uint64_t run = 0;               // what is over in one run is not in another
  std::vector<row_table> tables{};     // whose rows travel one by one
};

/// Thread-safe: each shard has a lock of its own. An answer may come later, from another thread; no lock is held then.
template <class T, optimizer Optimizer>
class parameter_store {
 public:
  using answer = parameter_answer<T>;
  using responder = std::function<void(answer)>;
  using clock = std::chrono::steady_clock;

  parameter_store(Optimizer rules, std::span<const parameter_range> trained, const std::vector<parameter_shard>& shards,
                  parameter_store_options options)
      : rules_(std::move(rules)), options_(std::move(options)), members_(options_.workers.size()) {
    for (const parameter_shard& place : shards) {
      shards_.push_back(nullptr);
      if (place.server == options_.server)
        shards_.back() = std::make_unique<shard>(place, trained, options_.tables, rules_.slots(), members_.size());
    }
  }

  std::size_t workers() const { return options_.workers.size(); }
  /// That this server has.
  int shards() const {
    return int(std::ranges::count_if(shards_, [](const auto& s) { return s != nullptr; }));
  }
  /// Of their weights.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& s : shards_) sum += s ? s->bytes() : 0;
    return sum;
  }

  // Who is there.

  /// Returns the number of this connection, which may replace a broken one; -1 for a process that has been replaced by another.
  long join(int worker, std::uint64_t incarnation) {
    long connection = 0;
    {
      const std::lock_guard lock(roster_);
      member& m = members_[std::size_t(worker)];
      if (m.incarnation != incarnation) {
        if (std::ranges::find(m.replaced, incarnation) != m.replaced.end()) return -1;
        if (m.incarnation != 0) m.replaced.push_back(m.incarnation);
        if (m.replaced.size() > 1000) m.replaced.erase(m.replaced.begin());
      }
      connection = ++m.connections;
      m.is = state::present, m.incarnation = incarnation, m.connected = true, m.since = clock::now();
      anybody_came_ = true;
    }
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        worker_clock& mine = s->clocks[std::size_t(worker)];
        if (mine.incarnation != incarnation && incarnation_of(worker) == incarnation)  // or another has come meanwhile
          mine = {incarnation, -1, slowest(*s, worker)};
      }
    return connection;
  }
  void leave(int worker, std::uint64_t incarnation) { depart(worker, incarnation, -1, state::left); }
  /// That connection has ended.
  void lose(int worker, std::uint64_t incarnation, long connection) { depart(worker, incarnation, connection, state::lost); }

  bool chief_has_left() const { return state_of(0) == state::left; }
  bool anybody_came() const {
    const std::lock_guard lock(roster_);
    return anybody_came_;
  }
  /// Whether nobody is there, nor may come back.
  bool is_deserted() const {
    const auto patience = std::max<std::chrono::milliseconds>(options_.lost_after, std::chrono::seconds(5));
    const std::lock_guard lock(roster_);
    for (const member& m : members_)
      if (m.is == state::present || (m.is != state::left && clock::now() - m.since < patience)) return false;
    return anybody_came_;
  }

  // What they ask for. `key` names the request until it is answered.

  /// Of the chief: weights in their first state, ignored where there are some, or others from now on.
  answer assign(int worker, std::uint64_t incarnation, std::uint32_t number, bool initial, std::size_t bytes, auto&& read) {
    shard* s = find(number);
    if (!s) return refuse(refusal::invalid, "there is no such shard here");
    if (worker != 0) return refuse(refusal::invalid, "only " + options_.workers[0] + " assigns weights");
    if (!is_current(worker, incarnation)) return fenced(worker);
    if (bytes != s->bytes()) return refuse(refusal::invalid, "the size of the message is wrong");
    std::vector<ready> answers;
    {
      const std::lock_guard lock(s->mutex);
      if (s->version < 0 || !initial) {
        own_snapshot(*s);
        read(s->now->weights.data(), bytes);
        s->version = std::max(s->version, 0L);
        s->is_settled = false;
        ++changes_;
      }
      take_ready(*s, answers);
    }
    for (auto& [respond, a] : answers) respond(std::move(a));
    return {};
  }

  /// Waits for the first weights, but not if the worker has had some: then they are lost.
  void pull(int worker, std::uint64_t incarnation, std::uint32_t number, bool had_some, const void* key, responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse(refusal::invalid, "there is no such shard here"));
    if (!is_current(worker, incarnation)) return respond(fenced(worker));
    if (had_some && !has_weights(*s)) return respond(refuse(refusal::empty, "there are no weights any more"));
    wait(*s, {key, worker, -1, clock::now(), std::move(respond)});
  }

  /// Of a worker that has had weights: the rows of tables that the message names, shard_contents::names_of.
  void pull_rows(int worker, std::uint64_t incarnation, std::uint32_t number, const void* key, std::size_t bytes, auto&& read,
                 responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse(refusal::invalid, "there is no such shard here"));
    if (!is_current(worker, incarnation)) return respond(fenced(worker));
    std::vector<element_run> pieces;
    if (const char* wrong = s->contents.read_names(read, bytes, pieces)) return respond(refuse(refusal::invalid, wrong));
    if (bytes != 0) return respond(refuse(refusal::invalid, "the size of the message is wrong"));
    if (!has_weights(*s)) return respond(refuse(refusal::empty, "there are no weights any more"));
    wait(*s, {key, worker, -1, clock::now(), std::move(respond), true, std::move(pieces)});
  }

  /// Adds a gradient, unless it has been added; answers with the weights as soon as the worker may go on. For a shard with
  /// tables the message names rows first, and the gradient is of the rest and of these: that of other rows is zero. The answer
  /// is the rest alone.
  void push(const push_request& p, std::uint32_t number, const void* key, std::size_t bytes, auto&& read, responder respond) {
    shard* s = find(number);
    if (!s) return respond(refuse(refusal::invalid, "there is no such shard here"));
    if (!is_current(p.worker, p.incarnation)) return respond(fenced(p.worker));
    if (p.step < 0 || p.samples < 1 || p.leaves < 1 || p.leaves > max_leaves || !std::isfinite(p.learning_rate))
      return respond(refuse(refusal::invalid, "a push with numbers that make no sense"));
    std::vector<element_run> pieces, rest;
    const bool has_tables = s->contents.has_tables();
    if (has_tables) {
      if (const char* wrong = s->contents.read_names(read, bytes, pieces)) return respond(refuse(refusal::invalid, wrong));
      rest.assign(s->contents.rest().begin(), s->contents.rest().end());
    }
    answer problem;
    {
      const std::lock_guard lock(s->mutex);
      if (s->version < 0)
        problem = refuse(refusal::empty, "a gradient of weights that nobody has assigned");
      else if (is_synchronous(options_.staleness))
        problem = collect(*s, p, bytes, read, std::move(pieces));
      else
        problem = apply_once(*s, p, bytes, read, pieces);
    }
    if (problem.why != refusal::none) return respond(std::move(problem));
    wait(*s, {key, p.worker, p.step, clock::now(), std::move(respond), has_tables, std::move(rest)});
  }

  /// Whether that request was waiting: then nobody will answer it.
  bool forget(std::uint32_t number, const void* key) {
    shard* s = find(number);
    if (!s) return false;
    const std::lock_guard lock(s->mutex);
    return std::erase_if(s->waiting, [&](const request& r) { return r.key == key; }) > 0;
  }

  /// The most sums over subtrees of leaves that a push has.
  int most_parts() const { return is_synchronous(options_.staleness) ? subtrees::most : 1; }

  // What outlives this process: weights, the optimizer's state, and which pushes are in them.

  /// Changes to all shards since this server began.
  long changes() const { return changes_; }

  /// Calls section(bytes) for the roster, then for each shard, which nobody changes meanwhile.
  template <class F>
  void save(F&& section) const {
    std::string bytes;
    const auto add = [&](const void* from, std::size_t count) { bytes.append(static_cast<const char*>(from), count); };
    const bool over = chief_has_left();
    add(&over, sizeof over), add(&options_.run, sizeof options_.run);
    section(std::string_view(bytes));
    for (std::size_t k = 0; k < shards_.size(); ++k) {
      if (!shards_[k]) continue;
      const shard& s = *shards_[k];
      bytes.clear();
      {
        const std::lock_guard lock(s.mutex);
        add(&k, sizeof k), add(&s.place.begin, sizeof s.place.begin), add(&s.place.end, sizeof s.place.end);
        add(&s.version, sizeof s.version);
        for (const worker_clock& c : s.clocks)
          add(&c.incarnation, sizeof c.incarnation), add(&c.last_step, sizeof c.last_step), add(&c.progress, sizeof c.progress);
        add(std::as_const(s.now->weights).data(), s.now->weights.size() * sizeof(T));
        add(s.slots.data(), s.slots.size() * sizeof(T));
        add(s.tallies.data(), s.tallies.size() * sizeof(double));  // for a push that is repeated
      }
      section(std::string_view(bytes));
    }
  }
  /// What `save` has given, from section(), before anybody joins. False if it is of other shards or workers; then the store is
  /// as good as new.
  template <class F>
  bool restore(F&& section) {
    std::string_view bytes;
    bool fits = true;
    const auto take = [&](void* to, std::size_t count) {
      fits = fits && bytes.size() >= count;
      if (fits && count > 0) std::memcpy(to, bytes.data(), count), bytes.remove_prefix(count);
    };
    bytes = section();
    bool over = false;
    std::uint64_t run = 0;
    take(&over, sizeof over), take(&run, sizeof run);
    for (std::size_t k = 0; k < shards_.size() && fits; ++k) {
      if (!shards_[k]) continue;
      shard& s = *shards_[k];
      s.is_settled = false;
      std::size_t number = 0;
      parameter_shard place;
      bytes = section();
      take(&number, sizeof number), take(&place.begin, sizeof place.begin), take(&place.end, sizeof place.end);
      fits = fits && number == k && place.begin == s.place.begin && place.end == s.place.end;
      take(&s.version, sizeof s.version);
      for (worker_clock& c : s.clocks)
        take(&c.incarnation, sizeof c.incarnation), take(&c.last_step, sizeof c.last_step),
            take(&c.progress, sizeof c.progress);
      take(s.now->weights.data(), s.now->weights.size() * sizeof(T));
      take(s.slots.data(), s.slots.size() * sizeof(T));
      s.tallies.resize(bytes.size() / sizeof(double));
      take(s.tallies.data(), s.tallies.size() * sizeof(double));
      fits = fits && bytes.empty();
    }
    if (fits && over && run == options_.run) {
      for (member& m : members_) m.since = clock::now();  // the other workers may still train, and join again
      members_[0].is = state::left, anybody_came_ = true;
    }
    if (!fits)
      for (const auto& s : shards_)
        if (s) {
          s->version = -1;
          std::ranges::fill(s->slots.span(), T(0));
          std::ranges::fill(s->clocks, worker_clock{});
          s->tallies.clear();
        }
    return fits;
  }

  /// Ends requests that wait in vain; to be called now and then.
  void tick() {
    {
      const std::lock_guard lock(roster_);
      for (member& m : members_)
        if (m.is == state::present && !m.connected && clock::now() - m.since > options_.timeout)
          m.is = state::lost, m.since = clock::now();
    }
    std::vector<ready> answers;
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        take_ready(*s, answers);
        for (std::size_t i = s->waiting.size(); i-- > 0;)
          if (std::string why = in_vain(*s, s->waiting[i]); !why.empty())
            answers.push_back({take(*s, i), refuse(refusal::stalled, std::move(why))});
      }
    for (auto& [respond, a] : answers) respond(std::move(a));
  }
  /// Ends all requests that wait.
  void close() {
    std::vector<ready> answers;
    for (const auto& s : shards_)
      if (s) {
        const std::lock_guard lock(s->mutex);
        for (request& r : s->waiting)
          answers.push_back({std::move(r.respond), refuse(refusal::stalled, "the training is over")});
        s->waiting.clear();
      }
    for (auto& [respond, a] : answers) respond(std::move(a));
  }

 private:
  enum class state : std::uint8_t { absent, present, left, lost };
  struct member {
    state is = state::absent;
    std::uint64_t incarnation = 0;
    bool connected = false;
    clock::time_point since{};  // its last sign of life, or when it was expected
    long connections = 0;
    std::vector<std::uint64_t> replaced{};  // former processes
  };
  /// A worker as a shard sees it: the step it pushed last, and how many it has pushed, beside those of the slowest when it
  /// came.
  struct worker_clock {
    std::uint64_t incarnation = 0;
    std::int64_t last_step = -1;
    long progress = 0;
  };
  struct request {
    const void* key;
    int worker;
    std::int64_t step;  // of a push; -1: a pull
    clock::time_point since;
    responder respond;
    bool is_for_some = false;  // elements, not all
    std::vector<element_run> some{};
  };
  struct ready {
    responder respond;
    answer with;
  };
  /// Nobody writes to it while somebody reads it.
  struct snapshot {
    arena<T> weights;
    std::atomic<int> readers{0};
    explicit snapshot(std::size_t size) : weights(size) {}
  };
  /// What a worker has sent for the synchronous step under way: sums over subtrees of leaves.
  struct contribution {
    bool here = false;
    push_request what{};
    std::vector<element_run> pieces{};  // of tables, in sums
    arena<T> sums{};                    // zero in all others
    std::vector<double> tallies{};
  };
  struct shard {
    parameter_shard place;
    std::vector<parameter_range> trained;  // within the shard
    shard_contents contents;
    bool is_settled = false;  // an update has passed over all weights that were assigned: it flushes denormal ones
    mutable std::mutex mutex{};
    std::shared_ptr<snapshot> now;
    arena<T> slots;
    long version = -1;  // updates so far; -1: nobody has assigned weights
    std::vector<worker_clock> clocks;
    arena<T> incoming{};  // zero in tables
    std::vector<contribution> contributions;
    std::vector<double> tallies{};
    std::vector<request> waiting{};

    shard(const parameter_shard& p, std::span<const parameter_range> all, std::span<const row_table> tables, int slot_count,
          std::size_t workers)
        : place(p),
          contents(p, tables),
          now(std::make_shared<snapshot>(std::size_t(p.size()))),
          slots(std::size_t(p.size()) * std::size_t(slot_count)),
          clocks(workers),
          contributions(workers) {
      for (const parameter_range& r : all)
        if (std::max(r.begin, p.begin) < std::min(r.end, p.end))
          trained.push_back({std::max(r.begin, p.begin) - p.begin, std::min(r.end, p.end) - p.begin, r.regularizer});
    }
    std::size_t bytes() const { return std::size_t(place.size()) * sizeof(T); }
    /// Of a gradient of the rest and some pieces.
    std::size_t bytes_with(std::span<const element_run> pieces) const {
      return std::size_t(count_elements(contents.rest()) + count_elements(pieces)) * sizeof(T);
    }
    void read_gradient(auto& read, std::span<const element_run> pieces, T* to) const {
      for (const auto runs : {contents.rest(), pieces})
        for (const element_run& r : runs) read(to + r.begin, std::size_t(r.size()) * sizeof(T));
    }
  };

  Optimizer rules_;
  parameter_store_options options_;
  std::vector<std::unique_ptr<shard>> shards_;  // by number; empty where another server has it
  mutable std::mutex roster_;                   // may be taken with a shard's lock, never the other way round
  std::vector<member> members_;
  bool anybody_came_ = false;
  std::atomic<long> changes_ = 0;

  static answer refuse(refusal why, std::string text) {
    answer a;
    a.why = why, a.text = std::move(text);
    return a;
  }
  answer fenced(int worker) const {
    const bool known = worker >= 0 && worker < int(options_.workers.size());
    return refuse(refusal::fenced, (known ? options_.workers[std::size_t(worker)] : "a worker") +
                                       " has not joined, or has been replaced by another process");
  }
  shard* find(std::uint32_t number) const { return number < shards_.size() ? shards_[number].get() : nullptr; }
  static bool has_weights(const shard& s) {
    const std::lock_guard lock(s.mutex);
    return s.version >= 0;
  }
  bool carries_tallies(const shard& s) const { return s.place.begin == 0 && options_.tally_width > 0; }

  state state_of(int worker) const {
    const std::lock_guard lock(roster_);
    return members_[std::size_t(worker)].is;
  }
  std::uint64_t incarnation_of(int worker) const {
    const std::lock_guard lock(roster_);
    return members_[std::size_t(worker)].incarnation;
  }
  /// A request is a sign of life, even of one that seemed lost.
  bool is_current(int worker, std::uint64_t incarnation) {
    const std::lock_guard lock(roster_);
    if (worker < 0 || std::size_t(worker) >= members_.size()) return false;
    member& m = members_[std::size_t(worker)];
    if (m.incarnation != incarnation || m.is == state::absent || m.is == state::left) return false;
    m.is = state::present, m.since = clock::now();
    return true;
  }
  void depart(int worker, std::uint64_t incarnation, long connection, state to) {
    {
      const std::lock_guard lock(roster_);
      if (worker < 0 || std::size_t(worker) >= members_.size()) return;
      member& m = members_[std::size_t(worker)];
      if (m.incarnation != incarnation || m.is == state::absent || m.is == state::left) return;
      if (connection >= 0 && connection != m.connections) return;
      m.is = to, m.connected = false, m.since = clock::now();
    }
    tick();
  }

  /// Copy on write: who still sends the weights goes on with the old ones.
  static void own_snapshot(shard& s) {
    if (s.now->readers.load(std::memory_order_acquire) == 0) return;
    auto copy = std::make_shared<snapshot>(s.now->weights.size());
    std::ranges::copy(s.now->weights.span(), copy->weights.data());
    s.now = std::move(copy);
  }
  answer current(shard& s, const request& r) const {
    const T* const weights = std::as_const(s.now->weights).data();
    answer a;
    a.version = s.version;
    if (r.is_for_some) {
      a.count = count_elements(r.some);
      const auto copy = std::make_shared<T[]>(std::size_t(a.count));
      pack(weights, r.some, copy.get());
      a.weights = {copy, copy.get()};
    } else {
      a.count = s.place.size();
      s.now->readers.fetch_add(1, std::memory_order_relaxed);
      a.weights = std::shared_ptr<const T>(
          weights, [held = s.now](const T*) { held->readers.fetch_sub(1, std::memory_order_release); });
    }
    if (r.step >= 0 && carries_tallies(s)) a.tallies = s.tallies;
    return a;
  }

  static void clear(T* gradient, std::span<const element_run> pieces) {
    for (const element_run& piece : pieces) std::fill(gradient + piece.begin, gradient + piece.end, T{});
  }

  /// Outside of `slices` the gradient is zero.
  void apply(shard& s, T* gradient, std::span<const element_run> slices, int samples, double rate) {
    const flush_denormals scope;
    own_snapshot(s);
    const T scale = T(1) / T(samples);
    rules_.template with_rule<T>(s.version, rate, [&](const auto& rule) {
      using rule_type = std::remove_cvref_t<decltype(rule)>;
      T *slots[rule_type::slots + 1] = {}, *leaves[1] = {gradient};
      for (int k = 0; k < rule_type::slots; ++k) slots[k] = s.slots.data() + k * s.place.size();
      const weight_update<T, Optimizer> all{rules_, rate, scale, s.trained, s.now->weights.data(), slots, leaves, 1};
      if (s.contents.has_tables() && s.is_settled && keeps_weights_without_gradient(rule, scale, rate))
        for (const element_run& some : slices) all.apply(rule, some.begin, some.end);
      else
        all.apply(rule, 0, s.place.size());
    });
    s.is_settled = true;
    ++s.version;
    ++changes_;
  }

  /// Whether this step leaves a weight whose gradient is zero as it is, so that rows without a gradient need no update. A rule
  /// is arithmetic with one element and numbers that are the same for all, so weights of all magnitudes tell.
  template <class Rule>
  bool keeps_weights_without_gradient(const Rule& rule, T scale, double rate) const {
    if (Rule::slots > 0) return false;
    using limits = std::numeric_limits<T>;
    constexpr T some[slice_alignment / 2] = {0, limits::min(), T(1e-20), T(1e-5), T(0.7), 1, T(1e4), limits::max()};
    alignas(64) T weights[slice_alignment], before[slice_alignment], gradient[slice_alignment] = {};
    for (std::size_t i = 0; i < std::size(some); ++i) weights[2 * i] = some[i], weights[2 * i + 1] = -some[i];
    std::memcpy(before, weights, sizeof before);
    T *no_slots[1] = {}, *leaves[1] = {gradient};
    const parameter_range place{0, slice_alignment};
    const weight_update<T, Optimizer> update{rules_, rate, scale, {&place, 1}, weights, no_slots, leaves, 1};
    update.apply(rule, 0, slice_alignment);
    return std::memcmp(before, weights, sizeof before) == 0;
  }

  answer apply_once(shard& s, const push_request& p, std::size_t bytes, auto& read, std::span<const element_run> pieces) {
    if (bytes != s.bytes_with(pieces)) return refuse(refusal::invalid, "the size of the message is wrong");
    worker_clock& mine = s.clocks[std::size_t(p.worker)];
    if (mine.incarnation != p.incarnation) return fenced(p.worker);
    if (p.step <= mine.last_step) return {};
    s.incoming.grow(std::size_t(s.place.size()));
    s.read_gradient(read, pieces, s.incoming.data());
    apply(s, s.incoming.data(), s.contents.slices_around({pieces.begin(), pieces.end()}), p.samples, p.learning_rate);
    clear(s.incoming.data(), pieces);
    mine.last_step = p.step;
    ++mine.progress;
    return {};
  }

  answer collect(shard& s, const push_request& p, std::size_t bytes, auto& read, std::vector<element_run> pieces) {
    const std::string& name = options_.workers[std::size_t(p.worker)];
    const leaf_range share = share_of(p.leaves, p.worker, int(members_.size()));
    const int parts_of_this = subtrees(share).count();
    const std::size_t sums = std::size_t(parts_of_this) * s.bytes_with(pieces);
    const std::size_t numbers = carries_tallies(s) ? std::size_t(share.size()) * options_.tally_width : 0;
    if (bytes != sums + numbers * sizeof(double)) return refuse(refusal::invalid, "the size of the message is wrong");
    if (p.step < s.version) return {};  // added already
    if (p.step > s.version)
      return refuse(refusal::invalid, name + " pushes step " + std::to_string(p.step) + ", but the servers are at step " +
                                          std::to_string(s.version));
    contribution& mine = s.contributions[std::size_t(p.worker)];
    if (mine.here) return {};
    for (std::size_t r = 0; r < s.contributions.size(); ++r) {
      const contribution& c = s.contributions[r];
      if (c.here && (c.what.samples != p.samples || c.what.leaves != p.leaves))
        return refuse(refusal::invalid,
                      name + " and " + options_.workers[r] + " do not read the same batches: " + std::to_string(p.samples) +
                          " and " + std::to_string(c.what.samples) + " samples in " + std::to_string(p.leaves) + " and " +
                          std::to_string(c.what.leaves) + " leaves in step " + std::to_string(p.step));
    }
    mine.sums.grow(std::size_t(parts_of_this) * std::size_t(s.place.size()));
    for (int k = 0; k < parts_of_this; ++k) s.read_gradient(read, pieces, mine.sums.data() + k * s.place.size());
    mine.pieces = std::move(pieces);
    mine.tallies.resize(numbers);
    read(mine.tallies.data(), numbers * sizeof(double));
    mine.what = p;
    mine.here = true;
    for (const contribution& c : s.contributions)
      if (!c.here) return {};

    const flush_denormals scope;
    std::vector<T*> sum;
    std::vector<leaf_range> nodes;
    std::vector<element_run> named;  // by any of them
    s.tallies.clear();
    for (std::size_t r = 0; r < s.contributions.size(); ++r) {
      contribution& c = s.contributions[r];
      named.insert(named.end(), c.pieces.begin(), c.pieces.end());
      const subtrees parts(share_of(p.leaves, int(r), int(members_.size())));
      for (int k = 0; k < parts.count(); ++k) nodes.push_back(parts[k]), sum.push_back(c.sums.data() + k * s.place.size());
      s.tallies.insert(s.tallies.end(), c.tallies.begin(), c.tallies.end());
      c.here = false;
    }
    const std::vector<element_run> slices = s.contents.slices_around(named);
    add_in_tree([&](int k) { return nodes[std::size_t(k)]; }, int(nodes.size()), [&](int a, int b) {
      const T* const two[2] = {sum[std::size_t(a)], sum[std::size_t(b)]};
      for (const element_run& some : slices) sum_leaves(sum[std::size_t(a)], two, 2, some.begin, some.end);
    });
    apply(s, sum[0], slices, p.samples, s.contributions[0].what.learning_rate);
    for (T* const node : sum) clear(node, named);
    return {};
  }

  /// Of the workers that are there, but for this one.
  long slowest(const shard& s, int worker) const {
    const std::lock_guard lock(roster_);
    long least = -1;
    for (std::size_t r = 0; r < members_.size(); ++r)
      if (int(r) != worker && members_[r].is == state::present && s.clocks[r].incarnation == members_[r].incarnation)
        least = least < 0 ? s.clocks[r].progress : std::min(least, s.clocks[r].progress);
    return std::max(least, 0L);
  }
  bool may_go_on(const shard& s, const request& r) const {
    if (s.version < 0) return false;
    if (r.step < 0) return true;
    if (is_synchronous(options_.staleness)) return s.version > r.step;
    if (const auto* bounded = std::get_if<bounded_staleness>(&options_.staleness)) {
      if (!has_company(r.worker)) return true;
      return s.clocks[std::size_t(r.worker)].progress - slowest(s, r.worker) <= bounded->steps;
    }
    return true;
  }
  bool has_company(int worker) const {
    const std::lock_guard lock(roster_);
    for (std::size_t r = 0; r < members_.size(); ++r)
      if (int(r) != worker && members_[r].is == state::present) return true;
    return false;
  }
  void wait(shard& s, request r) {
    std::vector<ready> answers;
    {
      const std::lock_guard lock(s.mutex);
      s.waiting.push_back(std::move(r));
      take_ready(s, answers);
    }
    for (auto& [respond, a] : answers) respond(std::move(a));
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

  /// Why nobody will answer this request, or nothing.
  std::string in_vain(const shard& s, const request& r) const {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - r.since);
    const bool too_long = clock::now() - r.since > options_.timeout;
    if (r.step < 0 || s.version < 0)
      return too_long ? options_.workers[0] + " has not assigned the weights within " + std::to_string(waited.count()) + " s"
                      : "";
    const std::lock_guard lock(roster_);
    for (std::size_t w = 0; w < members_.size(); ++w) {
      const member& m = members_[w];
      const bool sync = is_synchronous(options_.staleness);
      const bool lags = sync ? !s.contributions[w].here
                             : m.is == state::present && s.clocks[w].progress < s.clocks[std::size_t(r.worker)].progress;
      if (!lags) continue;
      const std::string step = "step " + std::to_string(r.step);
      if (sync && m.is == state::left) return options_.workers[w] + " has left before " + step;
      if (sync && m.is == state::lost && clock::now() - m.since > options_.lost_after)
        return options_.workers[w] + " is gone: it did not push " + step;
      if (too_long)
        return options_.workers[w] + " has kept " + step + " of " + options_.workers[std::size_t(r.worker)] + " waiting for " +
               std::to_string(waited.count()) + " s";
    }
    return "";
  }
};

}  // namespace strata
