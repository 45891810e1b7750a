// The control plane of a training: the chief serves a key/value store and watches over the members of the run. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/generations.hpp>
#include <strata/distribute/control/guarded_server.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/control/membership.hpp>
#include <strata/distribute/control/value_list.hpp>
#include <strata/distribute/elastic.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

/// Serves a run until it is destroyed: a store, and a membership that processes join, from then on say every few seconds that they
/// are alive, and leave. When the run fails, everybody who waits for an answer is told why. An elastic one goes on: those that are
/// left come again, and when all that are alive have come, they are the next generation, with a store of its own. Messages of an
/// earlier one are refused. Late ones wait until the members form again for their sake.
/// Whatever strangers send is refused; there is a limit to what it keeps.
class coordinator {
  using clock = std::chrono::steady_clock;

 public:
  /// Throws strata::error if nobody can listen there, as when the port is in use, if the address is open to other machines
  /// without TLS, or if fewer connections are allowed than there are `members` (0: nobody knows how many).
  /// `patience`: how long a generation waits for a member that is alive, but does not come.
  coordinator(const endpoint& where, std::string run, const control_options& options = {}, std::uint64_t generation = 0,
              const elastic_options& elastic = {}, std::chrono::milliseconds patience = std::chrono::seconds(30), int members = 0)
      : service_(std::move(run), generation, options, elastic, patience),
        server_(where, "the coordinator", service_, options, {.largest_message = detail::largest_value, .members = members}) {
    watch_ = std::thread([this] { service_.watch(); });
  }
  ~coordinator() {
    service_.close();
    watch_.join();
  }
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  /// Somebody wants to be in the next generation.
  bool late_one_waits() const { return service_.late_one_waits(); }

 private:
  class service;

  /// One message, and its answer, which may take its time.
  class call final : public grpc::ServerGenericBidiReactor {
   public:
    call(service& owner, grpc::GenericCallbackServerContext& context) : owner_(owner), context_(context), method(context.method()) {
      if (++owner_.calls > most_calls) {
        Finish({grpc::StatusCode::UNAVAILABLE, "too many calls"});
        return;
      }
      const auto header = [&](const char* name) {
        const auto found = context.client_metadata().find(name);
        return found == context.client_metadata().end() ? std::string() : std::string(found->second.data(), found->second.size());
      };
      run = header(detail::run_header);
      generation = header(detail::generation_header);
      key = header(detail::key_header);
      std::istringstream words(header(detail::member_header));
      if (int r = 0; words >> r >> incarnation) rank = r;
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "no message"});
      value = detail::text_of(message_);
      owner_.handle(*this);
    }
    void OnCancel() override {
      if (owner_.forget(*this)) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      --owner_.calls;
      delete this;
    }
    void answer(const grpc::Status& status, const grpc::ByteBuffer& body) {
      if (!status.ok()) return Finish(status);
      message_ = body;
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    }
    bool is_cancelled() const { return context_.IsCancelled(); }

   private:
    service& owner_;
    grpc::GenericCallbackServerContext& context_;
    grpc::ByteBuffer message_;

   public:
    const std::string method;
    std::string run, generation, key, value;
    std::optional<int> rank;
    std::uint64_t incarnation = 0;
    bool knows = false;  // that its generation has failed, and says that it is alive all the same
    member who{};        // that comes late
    clock::time_point due = clock::time_point::max();  // of the answer
    std::string awaited;                               // the key
    int count = 0, found = 0;                          // where it asks for key + "0", ...: values that are there without a gap
  };

  class service final : public grpc::CallbackGenericService {
    /// Calls are answered without holding the lock, since gRPC may call back at once.
    class answers {
      struct one {
        call* to;
        grpc::Status status;
        grpc::ByteBuffer body;
      };
      std::vector<one> all_;

     public:
      void add(call& to, const std::string& text = {}) { all_.push_back({&to, grpc::Status::OK, detail::buffer_of(text)}); }
      void add(call& to, const grpc::Slice& body) { all_.push_back({&to, grpc::Status::OK, grpc::ByteBuffer(&body, 1)}); }
      void refuse(call& to, grpc::StatusCode code, const std::string& why) { all_.push_back({&to, {code, why}, {}}); }
      void send() {
        for (const one& a : all_) a.to->answer(a.status, a.body);
      }
    };

   public:
    std::atomic<int> calls{0};

    service(std::string run, std::uint64_t generation, const control_options& options, const elastic_options& elastic,
            std::chrono::milliseconds patience)
        : run_(std::move(run)), options_(options), on_change_(elastic.on_change),
          generations_(options.heartbeat, generation, elastic.least_workers, patience) {}

    bool late_one_waits() const { return late_one_waits_.load(std::memory_order_relaxed); }

    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new call(*this, *context);
    }

    void handle(call& c) {
      answers out;
      {
        const std::lock_guard lock(mutex_);
        dispatch(c, out);
        settle(out, clock::now());
      }
      out.send();
    }
    /// Whether it was waiting.
    bool forget(call& c) {
      bool was_waiting = false;
      {
        const std::lock_guard lock(mutex_);
        was_waiting = std::erase(waiting_, &c) > 0;
        const bool watches = c.awaited.empty() && c.method != detail::enter_method;
        if (was_waiting && watches && c.generation == generation() && !refused(c)) {
          if (c.method == detail::form_again_method) generations_.withdraw(*c.rank);
          members().lose_connection(*c.rank, clock::now());
          stir_.notify_all();
        }
      }
      return was_waiting;
    }
    /// Answers what is due, and looks after the members, until the service is closed.
    void watch() {
      const auto pause = std::clamp(options_.heartbeat.interval / 10, std::chrono::milliseconds(5), std::chrono::milliseconds(100));
      std::unique_lock lock(mutex_);
      while (!closed_) {
        stir_.wait_for(lock, pause);
        answers out;
        const auto now = clock::now();
        members().look(now);
        settle(out, now);
        for (call* c : take_waiting([&](const call& w) { return now >= w.due; })) {
          if (c->method == detail::enter_method) {
            out.refuse(*c, grpc::StatusCode::DEADLINE_EXCEEDED,
                       "the others have not come to the end of a step, or another process has its place");
          } else if (c->method == detail::join_method) {
            out.refuse(*c, grpc::StatusCode::DEADLINE_EXCEEDED, members().missing());
            if (!refused(*c)) members().leave(*c->rank, now);
          } else if (c->method == detail::get_all_method) {
            out.add(*c, detail::some_are_missing + missing(*c));
          } else {
            out.add(*c);
          }
        }
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
    /// Ends calls that wait: processes whose training has not ended will notice at their next message to this one.
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
    void dispatch(call& c, answers& out) {
      using enum grpc::StatusCode;
      const auto now = clock::now();
      if (c.run != run_) return out.refuse(c, FAILED_PRECONDITION, "this is run '" + run_ + "', not '" + shown(c.run, 100) + "'");
      const bool comes_late = is_late(c);
      if (c.generation != generation() && !comes_late) return out.refuse(c, FAILED_PRECONDITION, not_this_generation(c));
      const bool ends = c.method == detail::fail_method || c.method == detail::leave_method;
      if (const std::string why = generations_.end(); !why.empty() && !ends) return out.refuse(c, ABORTED, why);
      if (closed_ && !ends) return out.refuse(c, OUT_OF_RANGE, the_end);
      if (comes_late) return come_late(c, out, now);
      if (c.method == detail::join_method) return join(c, out, now);
      if (c.rank)
        if (const auto why = refused(c)) return out.refuse(c, FAILED_PRECONDITION, *why);
      if (c.method == detail::beat_method) c.knows = c.value.starts_with(detail::failure_is_known);
      if (has_failed() && !ends && !c.knows && c.method != detail::form_again_method) return out.refuse(c, ABORTED, members().failure());
      if (const bool sets = c.method == detail::set_method; sets || c.method == detail::get_method) {
        if (c.key.empty() || c.key.size() > detail::longest_key) return out.refuse(c, INVALID_ARGUMENT, "no key");
        return sets ? set(c, out) : get(c, out);
      }
      if (!c.rank) return out.refuse(c, INVALID_ARGUMENT, "only a member may ask for that");
      if (c.method == detail::get_all_method) {
        std::istringstream words(c.value);
        long timeout = 0;
        if (!(words >> c.count >> timeout) || c.count < 1 || c.count > membership::most_members)
          return out.refuse(c, INVALID_ARGUMENT, "no number of values");
        const std::size_t line = c.value.find('\n');
        c.key = line == c.value.npos ? "" : c.value.substr(line + 1);
        if (c.key.empty() || key_of(c, c.count - 1).size() > detail::longest_key)
          return out.refuse(c, INVALID_ARGUMENT, "no key");
        c.due = now + std::chrono::milliseconds(std::clamp(timeout, 0l, 86'400'000l));
        return get_all(c, out);
      }
      if (c.method == detail::beat_method) {
        std::istringstream words(c.knows ? c.value.substr(1) : c.value);
        wait_state::report waits;
        long waited = 0, altogether = 0;
        words >> waits.on >> waited >> altogether >> std::ws;
        if (!words) return out.refuse(c, INVALID_ARGUMENT, "no heartbeat");
        std::getline(words, waits.what);
        waits.what = shown(waits.what, 100);
        waits.waited = std::chrono::milliseconds(waited);
        waits.altogether = std::chrono::milliseconds(altogether);
        members().beat(*c.rank, waits, now);
        return wait(c, out, now + options_.heartbeat.interval);
      }
      if (c.method == detail::fail_method) {
        std::istringstream words(c.value);
        int on = -1;
        std::string why;
        words >> on >> std::ws;
        std::getline(words, why, '\0');
        members().fail(*c.rank, on, shown(why, 2000), now);
        return out.add(c, members().failure());
      }
      if (c.method == detail::leave_method) {
        members().leave(*c.rank, now);
        return out.add(c);
      }
      if (c.method == detail::form_again_method && generations_.is_elastic()) {
        generations_.come(*c.rank, now);
        return wait(c, out, clock::time_point::max());
      }
      out.refuse(c, UNIMPLEMENTED, "unknown method");
    }
    /// What a join says, and how long it waits; nothing if it says something else.
    static std::optional<std::pair<member, std::chrono::milliseconds>> read_member(const call& c) {
      std::istringstream words(c.value);
      member m;
      long timeout = 0;
      words >> m.rank >> m.size >> m.pid >> timeout >> std::ws;
      std::getline(words, m.name);
      std::getline(words, m.host);
      std::getline(words, m.agreement, '\0');
      if (!words || !c.rank || m.rank != *c.rank) return {};
      m.incarnation = c.incarnation;
      m.name = shown(m.name, 100), m.host = shown(m.host, 300), m.agreement = shown(m.agreement, 10'000);
      return std::pair(std::move(m), std::chrono::milliseconds(std::clamp(timeout, 0l, 86'400'000l)));
    }
    void join(call& c, answers& out, clock::time_point now) {
      const auto read = read_member(c);
      if (!read) return out.refuse(c, grpc::StatusCode::INVALID_ARGUMENT, "no member");
      if (const auto why = members().join(read->first, now)) return out.refuse(c, grpc::StatusCode::FAILED_PRECONDITION, *why);
      wait(c, out, now + read->second);
      if (!members().is_complete()) return;
      const std::string all = to_string(generations_.current());
      for (call* w : take_waiting([](const call& w) { return w.method == detail::join_method; })) out.add(*w, all);
    }
    /// Whoever comes when the first generation is complete, and is not in it.
    bool is_late(const call& c) const {
      if (!generations_.is_elastic() || !generations_.now().is_complete() || !c.rank) return false;
      return c.method == detail::enter_method || (c.method == detail::join_method && refused(c));
    }
    void come_late(call& c, answers& out, clock::time_point now) {
      const auto read = read_member(c);
      if (!read) return out.refuse(c, grpc::StatusCode::INVALID_ARGUMENT, "no member");
      if (const auto why = generations_.refuses_late(read->first)) return out.refuse(c, grpc::StatusCode::FAILED_PRECONDITION, *why);
      if (c.method == detail::join_method) return out.add(c, detail::is_late);
      if (!refused(c) && !members().is_gone(*c.rank, now)) return out.add(c, to_string(generations_.current()));  // asks again
      c.who = read->first;
      wait(c, out, now + read->second);
    }
    /// What follows from a message, or from time that has passed.
    void settle(answers& out, clock::time_point now) {
      std::vector<member> late;
      for (const call* w : waiting_)
        if (w->method == detail::enter_method && generations_.has_place_for(w->who, now)) late.push_back(w->who);
      late_one_waits_.store(!late.empty(), std::memory_order_relaxed);
      if (const auto change = generations_.form(late, now)) {
        news_.push_back(*change);
        stir_.notify_all();
        values_.clear();
        kept_ = 0;
        told_last_ = {};
        const std::string all = to_string(generations_.current());
        for (call* c : take_waiting([&](const call& w) { return w.method != detail::enter_method || !refused(w); })) {
          if (c->method == detail::form_again_method || c->method == detail::enter_method)
            out.add(*c, all);
          else
            out.refuse(*c, grpc::StatusCode::FAILED_PRECONDITION, not_this_generation(*c));
        }
      }
      tell_failure(out);
    }
    void set(call& c, answers& out) {
      const auto found = values_.find(c.key);
      const std::size_t before = found == values_.end() ? 0 : c.key.size() + found->second.size();
      const std::size_t kept = kept_ - before + c.key.size() + c.value.size();
      if (kept > most_kept || (found == values_.end() && values_.size() >= most_keys))
        return out.refuse(c, grpc::StatusCode::RESOURCE_EXHAUSTED, "the store is full");
      kept_ = kept;
      values_[c.key] = c.value;
      if (c.key.starts_with(told_last_.prefix)) told_last_ = {};
      for (call* w : take_waiting([&](const call& w) { return w.awaited == c.key; }))
        w->method == detail::get_method ? out.add(*w, c.value) : get_all(*w, out);
      out.add(c);
    }
    void get(call& c, answers& out) {
      if (const auto found = values_.find(c.key); found != values_.end()) return out.add(c, found->second);
      c.awaited = c.key;
      wait(c, out, clock::time_point::max());
    }
    /// It waits for the first one that is missing, and so on.
    void get_all(call& c, answers& out) {
      using enum grpc::StatusCode;
      if (told_last_.prefix == c.key && told_last_.count == c.count) return out.add(c, told_last_.values);
      while (c.found < c.count && values_.contains(key_of(c, c.found))) ++c.found;
      if (c.found < c.count) {
        c.awaited = key_of(c, c.found);
        return wait(c, out, c.due);
      }
      std::size_t bytes = 1;
      for (int i = 0; i < c.count; ++i) bytes += detail::bytes_in_list(values_[key_of(c, i)]);
      if (bytes > detail::largest_answer)
        return out.refuse(c, RESOURCE_EXHAUSTED, std::to_string(c.count) + " values have " + std::to_string(bytes) +
                                                     " bytes, of at most " + std::to_string(detail::largest_answer));
      if (*under_way_ + bytes > most_under_way) return out.refuse(c, UNAVAILABLE, "too much to tell others");  // asks again
      std::string all = detail::all_are_here;
      all.reserve(bytes);
      for (int i = 0; i < c.count; ++i) detail::append_to_list(all, values_[key_of(c, i)]);
      told_last_ = {c.key, c.count, counted(std::move(all))};
      out.add(c, told_last_.values);
    }
    static std::string key_of(const call& c, int number) { return c.key + std::to_string(number); }
    /// How many, and the first of them: "3 0 2 5".
    std::string missing(const call& c) const {
      std::size_t count = 0;
      std::string numbers;
      for (int i = c.found; i < c.count; ++i)
        if (!values_.contains(key_of(c, i)) && ++count <= missing_values::most_named) numbers += ' ' + std::to_string(i);
      return std::to_string(count) + numbers;
    }
    /// Its bytes count as under way until the last call that is told them has ended.
    grpc::Slice counted(std::string text) const {
      struct shared {
        std::string text;
        std::shared_ptr<std::atomic<std::size_t>> under_way;
      };
      auto all = std::make_unique<shared>(shared{std::move(text), under_way_});
      *under_way_ += all->text.size();
      const auto end = [](void* ended) {
        const std::unique_ptr<shared> all(static_cast<shared*>(ended));
        *all->under_way -= all->text.size();
      };
      shared* const raw = all.release();
      return grpc::Slice(raw->text.data(), raw->text.size(), end, raw);
    }
    void wait(call& c, answers& out, clock::time_point due) {
      if (c.is_cancelled()) return out.refuse(c, grpc::StatusCode::CANCELLED, "");  // or nobody would end it
      c.due = due;
      waiting_.push_back(&c);
    }
    void tell_failure(answers& out) {
      if (const std::string why = generations_.end(); !why.empty()) {
        for (call* c : take_waiting([](const call&) { return true; })) out.refuse(*c, grpc::StatusCode::ABORTED, why);
      } else if (has_failed()) {
        const auto unaware = [](const call& w) { return !w.awaited.empty() || (w.method == detail::beat_method && !w.knows); };
        for (call* c : take_waiting(unaware)) out.refuse(*c, grpc::StatusCode::ABORTED, members().failure());
      }
    }
    bool has_failed() const { return !generations_.now().failure().empty(); }
    membership& members() { return generations_.now(); }
    std::string generation() const { return std::to_string(generations_.current().generation); }
    std::string not_this_generation(const call& c) const {
      if (generations_.is_elastic() && std::strtoull(c.generation.c_str(), nullptr, 10) < generations_.current().generation)
        return "the training goes on as generation " + generation() +
               " of the cluster without this process, which is still in generation " + shown(c.generation, 20) +
               ": it was lost to the others, but may be started again";
      return "this is generation " + generation() + " of the cluster, not " + shown(c.generation, 20);
    }
    /// Why a message is not listened to: it comes from a process whose place another one has taken, or that never joined.
    std::optional<std::string> refused(const call& c) const { return generations_.now().refuses(*c.rank, c.incarnation); }

    template <class F>
    std::vector<call*> take_waiting(F&& which) {
      const auto kept = std::stable_partition(waiting_.begin(), waiting_.end(), [&](call* c) { return !which(*c); });
      std::vector<call*> taken(kept, waiting_.end());
      waiting_.erase(kept, waiting_.end());
      return taken;
    }

    /// Text from outside, short and without control characters.
    static std::string shown(std::string text, std::size_t most) {
      text.resize(std::min(text.size(), most));
      for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
      return text;
    }

    static constexpr const char* the_end = "the coordinator has ended";
    static constexpr std::size_t most_keys = 1 << 16, most_kept = 8 << 20, most_under_way = 32 << 20;

    const std::string run_;
    const control_options options_;
    const std::function<void(const std::string&)> on_change_;
    std::mutex mutex_;
    std::condition_variable stir_;  // there is something to do before time has passed
    std::map<std::string, std::string> values_;
    std::size_t kept_ = 0;
    /// All ask for the same, and share the answer.
    struct {
      std::string prefix;
      int count = 0;
      grpc::Slice values;
    } told_last_;
    /// Bytes of such answers; calls of a server that ends may outlive this.
    const std::shared_ptr<std::atomic<std::size_t>> under_way_ = std::make_shared<std::atomic<std::size_t>>(0);
    generations generations_;
    std::vector<std::string> news_;
    std::atomic<bool> late_one_waits_{false};
    std::vector<call*> waiting_;
    bool closed_ = false;
  };

  static constexpr int most_calls = 1 << 12;

  service service_;
  detail::guarded_server server_;
  std::thread watch_;
};

}  // namespace strata
