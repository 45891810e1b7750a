// The control plane of a training: the chief serves a key/value store and watches over the members. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/distribute/control/callers.hpp>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/control_messages.hpp>
#include <strata/distribute/control/generations.hpp>
#include <strata/distribute/control/guarded_server.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/control/membership.hpp>
#include <strata/distribute/control/status_text.hpp>
#include <strata/distribute/elastic.hpp>
#include <strata/distribute/wire/envelope.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata::control {

/// Serves a run until it is destroyed: a key/value store, and a membership. Processes join it, send heartbeats, and leave. When
/// the run fails, every process that waits for an answer is told why. An elastic run goes on: the living members ask for the next
/// generation, which begins with an empty store when all of them have asked; messages of earlier generations are refused. Late
/// processes wait until the members form the next generation to take them in. Malformed messages and messages of other runs are
/// refused, and the memory for what it keeps is bounded.
class coordinator {
  using clock = std::chrono::steady_clock;

 public:
  /// `patience`: how long a new generation waits for a living member that does not ask for it. `members`: the expected number of
  /// processes; 0: unknown. `places`: of a group, see generations.
  /// Throws strata::error if it cannot listen at `where`, as when the port is in use, if the address is open to other machines
  /// without a proof, or if `options.connections` is less than `members`.
  coordinator(const endpoint& where, std::string run, const control_options& options = {}, std::uint64_t generation = 0,
              const elastic_options& elastic = {}, std::chrono::milliseconds patience = std::chrono::seconds(30), int members = 0,
              int places = 1)
      : service_(std::move(run), generation, options, elastic, patience, places),
        server_(where, "the coordinator", service_, options,
                {.largest_message = largest_request,
                 .memory = (std::size_t(32) << 20) + std::size_t(members) * largest_request,  // all may join at once
                 .members = members},
                service_.who_calls()) {
    watch_ = std::thread([this] { service_.watch(); });
  }
  ~coordinator() {
    service_.close();
    watch_.join();
  }
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  /// Whether a late process waits to be taken into the next generation.
  bool late_one_waits() const { return service_.late_one_waits(); }

 private:
  using methods = coordinator_methods;
  static constexpr std::size_t largest_request = largest_value + (4 << 10);

  class service;

  /// One request, whose answer may come later.
  class call final : public grpc::ServerGenericBidiReactor {
   public:
    call(service& owner, grpc::GenericCallbackServerContext& context)
        : owner_(owner), context_(context), method(context.method()) {
      owner_.who_calls()->begins(context_);
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      owner_.who_calls()->has_spoken(context_);
      if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
      try {
        const wire::envelope received(message_);
        message_.Clear();  // the call may wait for long
        from = received.from();
        owner_.handle(*this, received);
      } catch (const wire::malformed_message& e) {
        Finish({grpc::StatusCode::INVALID_ARGUMENT, e.what()});
      }
    }
    void OnCancel() override {
      if (owner_.forget(*this)) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }
    void answer(const grpc::Status& status, const grpc::ByteBuffer& body) {
      if (!status.ok()) return Finish(status);
      message_ = body;
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    }
    bool is_cancelled() const { return context_.IsCancelled(); }
    void is_of_member() const { owner_.who_calls()->is_member(context_); }

   private:
    service& owner_;
    grpc::GenericCallbackServerContext& context_;
    grpc::ByteBuffer message_;

   public:
    const std::string method;
    wire::sender from{};
    bool knows_failure = false;                        // of its generation; a heartbeat
    std::uint64_t knows_notice = 0;                    // likewise
    member who{};                                      // of a late process
    clock::time_point due = clock::time_point::max();  // when it gets an answer at the latest
    std::string awaited{};                             // the key whose value it waits for
    get_all_request wanted{};                          // of get_all
    int found = 0;                                     // the first values that get_all wants are there
  };

  class service final : public grpc::CallbackGenericService {
    /// Answers are sent after the lock is released, because gRPC may call back at once.
    class answers {
      struct one {
        call* to;
        grpc::Status status;
        grpc::ByteBuffer body;
      };
      std::vector<one> all_;

     public:
      template <wire::message M>
      void add(call& to, const M& body) {
        all_.push_back({&to, grpc::Status::OK, wire::sealed(body)});
      }
      void add(call& to) { add(to, empty_message{}); }
      void add_sealed(call& to, const grpc::Slice& body) { all_.push_back({&to, grpc::Status::OK, grpc::ByteBuffer(&body, 1)}); }
      void refuse(call& to, grpc::StatusCode code, const std::string& why) {
        all_.push_back({&to, detail::status_of(code, why), {}});
      }
      void send() {
        for (const one& a : all_) a.to->answer(a.status, a.body);
      }
    };

   public:
    service(std::string run, std::uint64_t generation, const control_options& options, const elastic_options& elastic,
            std::chrono::milliseconds patience, int places)
        : run_(std::move(run)),
          options_(options),
          on_change_(elastic.on_change),
          generations_(options.heartbeat, generation, elastic.least_workers, patience, places) {}

    const std::shared_ptr<detail::callers>& who_calls() const { return callers_; }
    bool late_one_waits() const { return late_one_waits_.load(std::memory_order_relaxed); }

    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new call(*this, *context);
    }

    void handle(call& c, const wire::envelope& received) {
      answers out;
      {
        const std::lock_guard lock(mutex_);
        try {
          dispatch(c, received, out);
        } catch (const wire::malformed_message& e) {
          out.refuse(c, grpc::StatusCode::INVALID_ARGUMENT, e.what());
        }
        settle(out, clock::now());
      }
      out.send();
    }
    /// A call was cancelled. Returns whether it was waiting.
    bool forget(call& c) {
      bool was_waiting = false;
      {
        const std::lock_guard lock(mutex_);
        was_waiting = std::erase(waiting_, &c) > 0;
        const bool shows_life = c.awaited.empty() && c.method != methods::enter;
        if (was_waiting && shows_life && c.from.generation == generation() && !refused(c)) {
          if (c.method == methods::form_again) generations_.withdraw(c.from.rank);
          members().lose_connection(c.from.rank, clock::now());
          stir_.notify_all();
        }
      }
      return was_waiting;
    }
    /// Answers calls when their time is up and looks after the members, until the service is closed.
    void watch() {
      const auto pause =
          std::clamp(options_.heartbeat.interval / 10, std::chrono::milliseconds(5), std::chrono::milliseconds(100));
      std::unique_lock lock(mutex_);
      while (!closed_) {
        stir_.wait_for(lock, pause);
        answers out;
        const auto now = clock::now();
        members().look(now);
        settle(out, now);
        for (call* c : take_waiting([&](const call& w) { return now >= w.due; })) time_is_up(*c, out, now);
        const auto slow = members().slow_member(now);
        const auto news = std::exchange(news_, {});
        lock.unlock();
        out.send();
        if (slow && options_.on_slow_process) options_.on_slow_process(*slow);
        for (const std::string& change : news)
          if (on_change_) on_change_(change);
        lock.lock();
      }
    }
    /// Ends calls that wait. Processes whose training goes on notice it at their next message to this coordinator.
    void close() {
      answers out;
      {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        stir_.notify_all();
        for (call* c : take_waiting([](const call&) { return true; })) out.refuse(*c, grpc::StatusCode::OUT_OF_RANGE, the_end);
      }
      out.send();
    }

   private:
    void dispatch(call& c, const wire::envelope& received, answers& out) {
      using enum grpc::StatusCode;
      const auto now = clock::now();
      if (c.from.run != run_)
        return out.refuse(
            c, FAILED_PRECONDITION,
            detail::text_of({"this process belongs to run '", printable(c.from.run, 100), "', the coordinator to another one"}));
      const bool comes_late = is_late(c);
      if (c.from.generation != generation() && !comes_late) return out.refuse(c, FAILED_PRECONDITION, not_this_generation(c));
      const bool ends = c.method == methods::fail || c.method == methods::leave;
      if (const std::string why = generations_.end(); !why.empty() && !ends) return out.refuse(c, ABORTED, why);
      if (closed_ && !ends) return out.refuse(c, OUT_OF_RANGE, the_end);
      if (comes_late) return come_late(c, received, out, now);
      if (c.method == methods::join) return join(c, received, out, now);
      if (is_member(c))
        if (const auto why = refused(c)) return out.refuse(c, FAILED_PRECONDITION, *why);
      if (is_member(c)) c.is_of_member();
      heartbeat_message beat;
      if (c.method == methods::beat) {
        beat = received.body<heartbeat_message>();
        c.knows_failure = beat.knows_failure;
      }
      if (has_failed() && !ends && !c.knows_failure && c.method != methods::form_again && c.method != methods::announce)
        return out.refuse(c, ABORTED, members().failure());
      if (c.method == methods::set) return set(c, received, out);
      if (c.method == methods::get) return get(c, received, out);
      if (!is_member(c))
        return out.refuse(c, INVALID_ARGUMENT, detail::text_of({"only a member may call ", printable(c.method, 100)}));
      if (c.method == methods::get_all) return get_all(c, received, out, now);
      if (c.method == methods::beat) {
        beat.waits.what = printable(beat.waits.what, 100), beat.waits.what_call = printable(beat.waits.what_call, 100);
        members().beat(c.from.rank, beat.waits, now, beat.knows_notice);
        c.knows_notice = beat.knows_notice;
        return wait(c, out, now + options_.heartbeat.interval);
      }
      if (c.method == methods::fail) {
        const auto report = received.body<failure_report>();
        members().fail(c.from.rank, report.blames, printable(report.why, 2000), now);
        return out.add(c, value_answer{members().failure()});
      }
      if (c.method == methods::announce) {
        announcement what = received.body<announcement>();
        what.trouble = printable(what.trouble, 2000), what.work = printable(what.work, 200);
        members().announce(c.from.rank, what, now);
        return what.trouble.empty() ? out.add(c) : wait(c, out, now + time_to_tell_all);
      }
      if (c.method == methods::leave) {
        members().leave(c.from.rank, now);
        return out.add(c);
      }
      if (c.method == methods::form_again && generations_.is_elastic()) {
        generations_.come(c.from.rank, now, received.body<form_again_request>().is_spare);
        return wait(c, out, clock::time_point::max());
      }
      out.refuse(c, UNIMPLEMENTED, detail::text_of({"the coordinator has no method ", printable(c.method, 100)}));
    }
    void time_is_up(call& c, answers& out, clock::time_point now) {
      if (c.method == methods::enter) {
        out.refuse(c, grpc::StatusCode::DEADLINE_EXCEEDED,
                   "the others have not come to the end of a step, or another process has its place");
      } else if (c.method == methods::join) {
        if (!refused(c)) members().pause(c.from.rank, now);
        out.add(c, join_answer{.absent = members().absent()});
      } else if (c.method == methods::get_all) {
        out.add(c, missing(c));
      } else if (c.method == methods::beat) {
        out.add(c, last_notice());
      } else {
        out.add(c);
      }
    }
    notice last_notice() { return {members().notice(), members().first_trouble(), members().first_work()}; }
    /// Members read what others have announced at once.
    void tell_notices(answers& out) {
      const auto is_new = [&](const call& w) { return w.method == methods::beat && w.knows_notice != members().notice(); };
      for (call* c : take_waiting(is_new)) out.add(*c, last_notice());
      if (members().all_know_notice())
        for (call* c : take_waiting([](const call& w) { return w.method == methods::announce; })) out.add(*c);
    }

    /// What a process says of itself when it joins, and how long it waits.
    static std::pair<member, std::chrono::milliseconds> read_member(const call& c, const wire::envelope& received) {
      auto [m, timeout] = received.body<join_request>();
      m.rank = c.from.rank, m.incarnation = c.from.incarnation;
      m.name = printable(m.name, 100), m.host = printable(m.host, 300);
      m.agreement.text = printable(m.agreement.text, agreement::most), m.agreement.hash = printable(m.agreement.hash, 64);
      return {std::move(m), bounded(timeout)};
    }
    void join(call& c, const wire::envelope& received, answers& out, clock::time_point now) {
      const auto [who, timeout] = read_member(c, received);
      if (const auto why = members().join(who, now)) return out.refuse(c, grpc::StatusCode::FAILED_PRECONDITION, *why);
      c.is_of_member();
      wait(c, out, now + timeout);
      if (!members().is_complete()) return;
      const join_answer all = joined();
      for (call* w : take_waiting([](const call& w) { return w.method == methods::join; })) out.add(*w, all);
    }
    /// Whether a process asks to take part after the first generation was complete, and is not in it.
    bool is_late(const call& c) const {
      if (!generations_.is_elastic() || !generations_.now().is_complete() || !is_member(c)) return false;
      return c.method == methods::enter || (c.method == methods::join && refused(c));
    }
    void come_late(call& c, const wire::envelope& received, answers& out, clock::time_point now) {
      const auto [who, timeout] = read_member(c, received);
      if (const auto why = generations_.refuses_late(who)) return out.refuse(c, grpc::StatusCode::FAILED_PRECONDITION, *why);
      if (c.method == methods::join) return out.add(c, join_answer{});
      if (!refused(c) && !members().is_gone(c.from.rank, now)) return out.add(c, joined());  // asks again
      c.who = who;
      c.is_of_member();
      wait(c, out, now + timeout);
    }
    join_answer joined() const { return {.all = generations_.current()}; }

    /// Draws the consequences of a message, or of time that has passed.
    void settle(answers& out, clock::time_point now) {
      std::vector<member> late;
      for (const call* w : waiting_)
        if (w->method == methods::enter && generations_.has_place_for(w->who, now)) late.push_back(w->who);
      late_one_waits_.store(generations_.is_elastic() && members().is_complete() && generations_.can_grow(late),
                            std::memory_order_relaxed);
      if (const auto change = generations_.form(late, now)) {
        news_.push_back(*change);
        stir_.notify_all();
        values_.clear();
        kept_ = 0;
        shared_ = {};
        for (call* c : take_waiting([&](const call& w) { return w.method != methods::enter || !refused(w); })) {
          if (c->method == methods::form_again || c->method == methods::enter)
            out.add(*c, joined());
          else
            out.refuse(*c, grpc::StatusCode::FAILED_PRECONDITION, not_this_generation(*c));
        }
      }
      tell_failure(out);
      tell_notices(out);
    }

    static bool is_key(const std::string& key) { return !key.empty() && key.size() <= longest_key; }
    static std::string no_key(const std::string& key) {
      return detail::text_of({"a key has 1 to ", longest_key, " bytes, not ", key.size()});
    }
    void set(call& c, const wire::envelope& received, answers& out) {
      auto [key, value] = received.body<set_request>();
      if (!is_key(key)) return out.refuse(c, grpc::StatusCode::INVALID_ARGUMENT, no_key(key));
      const auto found = values_.find(key);
      const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
      const std::size_t kept = kept_ - before + key.size() + value.size();
      if (kept > most_kept || (found == values_.end() && values_.size() >= most_keys))
        return out.refuse(c, grpc::StatusCode::RESOURCE_EXHAUSTED, "the store is full");
      kept_ = kept;
      const std::string& kept_value = values_[key] = std::move(value);
      if (key.starts_with(shared_.prefix)) shared_ = {};
      for (call* w : take_waiting([&, &key = key](const call& w) { return w.awaited == key; }))
        w->method == methods::get ? out.add(*w, value_answer{kept_value}) : find_all(*w, out);
      out.add(c);
    }
    void get(call& c, const wire::envelope& received, answers& out) {
      const auto [key] = received.body<get_request>();
      if (!is_key(key)) return out.refuse(c, grpc::StatusCode::INVALID_ARGUMENT, no_key(key));
      if (const auto found = values_.find(key); found != values_.end()) return out.add(c, value_answer{found->second});
      c.awaited = key;
      wait(c, out, clock::time_point::max());
    }
    void get_all(call& c, const wire::envelope& received, answers& out, clock::time_point now) {
      using enum grpc::StatusCode;
      c.wanted = received.body<get_all_request>();
      if (c.wanted.count < 1 || c.wanted.count > membership::most_members)
        return out.refuse(c, INVALID_ARGUMENT,
                          detail::text_of({"get_all wants 1 to ", membership::most_members, " values, not ", c.wanted.count}));
      if (const std::string last = key_of(c, c.wanted.count - 1); c.wanted.prefix.empty() || !is_key(last))
        return out.refuse(c, INVALID_ARGUMENT, no_key(c.wanted.prefix.empty() ? c.wanted.prefix : last));
      c.due = now + bounded(c.wanted.timeout);
      find_all(c, out);
    }
    /// Answers get_all, or waits for the first value that is missing.
    void find_all(call& c, answers& out) {
      using enum grpc::StatusCode;
      const auto& [prefix, count, timeout] = c.wanted;
      if (shared_.prefix == prefix && shared_.count == count) return out.add_sealed(c, shared_.answer);
      while (c.found < count && values_.contains(key_of(c, c.found))) ++c.found;
      if (c.found < count) {
        c.awaited = key_of(c, c.found);
        return wait(c, out, c.due);
      }
      get_all_answer all;
      for (int i = 0; i < count; ++i) all.values.push_back(values_[key_of(c, i)]);
      std::string sealed = wire::sealed_text(all);
      if (sealed.size() > largest_answer)
        return out.refuse(c, RESOURCE_EXHAUSTED,
                          detail::text_of({count, " values have ", sealed.size(), " bytes, of at most ", largest_answer}));
      if (*under_way_ + sealed.size() > most_under_way)  // the client asks again
        return out.refuse(c, UNAVAILABLE, "the coordinator is still sending values to other processes");
      shared_ = {prefix, count, counted(std::move(sealed))};
      out.add_sealed(c, shared_.answer);
    }
    static std::string key_of(const call& c, int index) { return detail::text_of({c.wanted.prefix, index}); }
    get_all_answer missing(const call& c) const {
      get_all_answer answer;
      for (int i = c.found; i < c.wanted.count; ++i)
        if (!values_.contains(key_of(c, i)) && std::size_t(++answer.missing) <= missing_values::most_named)
          answer.first_missing.push_back(i);
      return answer;
    }
    /// Its bytes count as under way until the last call that it answers has ended.
    grpc::Slice counted(std::string text) const {
      struct counted_text {
        std::string text;
        std::shared_ptr<std::atomic<std::size_t>> under_way;
      };
      auto all = std::make_unique<counted_text>(counted_text{std::move(text), under_way_});
      *under_way_ += all->text.size();
      const auto end = [](void* ended) {
        const std::unique_ptr<counted_text> all(static_cast<counted_text*>(ended));
        *all->under_way -= all->text.size();
      };
      counted_text* const raw = all.release();
      return grpc::Slice(raw->text.data(), raw->text.size(), end, raw);
    }

    void wait(call& c, answers& out, clock::time_point due) {
      if (c.is_cancelled()) return out.refuse(c, grpc::StatusCode::CANCELLED, "");  // OnCancel came too early to end it
      if (!is_member(c) && std::ranges::count_if(waiting_, [](const call* w) { return !is_member(*w); }) >= most_others_waiting)
        return out.refuse(c, grpc::StatusCode::UNAVAILABLE, "too many processes that are no members wait for values");
      c.due = due;
      waiting_.push_back(&c);
    }
    void tell_failure(answers& out) {
      if (const std::string why = generations_.end(); !why.empty()) {
        for (call* c : take_waiting([](const call&) { return true; })) out.refuse(*c, grpc::StatusCode::ABORTED, why);
      } else if (has_failed()) {
        const auto is_unaware = [](const call& w) {
          return !w.awaited.empty() || (w.method == methods::beat && !w.knows_failure);
        };
        for (call* c : take_waiting(is_unaware)) out.refuse(*c, grpc::StatusCode::ABORTED, members().failure());
      }
    }
    bool has_failed() const { return !generations_.now().failure().empty(); }
    membership& members() { return generations_.now(); }
    std::uint64_t generation() const { return generations_.number(); }
    std::string not_this_generation(const call& c) const {
      const std::string now = std::to_string(generation()), its = std::to_string(c.from.generation);
      if (generations_.is_elastic() && c.from.generation < generation())
        return detail::text_of({"the training goes on as generation ", now,
                                " of the cluster without this process, which is still in generation ", its,
                                ": it was lost to the others, but may be started again"});
      return detail::text_of({"this is generation ", now, " of the cluster, not ", its});
    }
    static bool is_member(const call& c) { return c.from.rank >= 0; }
    /// Why a message is refused: its sender never joined, or another process has its rank.
    std::optional<std::string> refused(const call& c) const {
      return generations_.now().refuses(c.from.rank, c.from.incarnation);
    }

    template <class F>
    std::vector<call*> take_waiting(F&& which) {
      const auto kept = std::stable_partition(waiting_.begin(), waiting_.end(), [&](call* c) { return !which(*c); });
      std::vector<call*> taken(kept, waiting_.end());
      waiting_.erase(kept, waiting_.end());
      return taken;
    }

    static std::chrono::milliseconds bounded(std::chrono::milliseconds timeout) {
      return std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), std::chrono::hours(24));
    }
    /// How long an announcement waits for the next heartbeat of each member.
    static constexpr auto time_to_tell_all = std::chrono::milliseconds(500);
    static constexpr const char* the_end = "the coordinator has ended";
    static constexpr int most_others_waiting = 1024;
    static constexpr std::size_t most_keys = 1 << 16, most_kept = 8 << 20, most_under_way = 32 << 20;

    const std::string run_;
    const control_options options_;
    const std::shared_ptr<detail::callers> callers_ = std::make_shared<detail::callers>();
    const std::function<void(const std::string&)> on_change_;
    std::mutex mutex_;
    std::condition_variable stir_;  // wakes the watching thread before its pause is over
    std::map<std::string, std::string> values_;
    std::size_t kept_ = 0;  // bytes of keys and values
    /// The last answer to get_all: all members ask for the same and share it.
    struct {
      std::string prefix;
      int count = 0;
      grpc::Slice answer;
    } shared_;
    /// Bytes of such answers. gRPC may hold them for longer than this service lives.
    const std::shared_ptr<std::atomic<std::size_t>> under_way_ = std::make_shared<std::atomic<std::size_t>>(0);
    generations generations_;
    std::vector<std::string> news_;
    std::atomic<bool> late_one_waits_{false};
    std::vector<call*> waiting_;
    bool closed_ = false;
  };

  service service_;
  detail::guarded_server server_;
  std::thread watch_;
};

}  // namespace strata::control
