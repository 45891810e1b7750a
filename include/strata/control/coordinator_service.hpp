// The coordinator's reactions to each message, and to time-outs. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/communicators/elastic.hpp>
#include <strata/control/admission.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/coordinator_call.hpp>
#include <strata/control/coordinator_values.hpp>
#include <strata/control/generations.hpp>
#include <strata/control/membership.hpp>
#include <strata/control/message_server.hpp>
#include <strata/control/shared_answer.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::control {

/// Serves the calls of a run: its values, its members and its generations. One lock guards all of them.
class coordinator_service final : public detail::message_service {
  using call = coordinator_call;
  using methods = coordinator_methods;
  using clock = std::chrono::steady_clock;
  using enum detail::status_code;

 public:
  coordinator_service(std::string run, std::uint64_t generation, const control_options& options, const elastic_options& elastic,
                      std::chrono::milliseconds patience, int places)
      : run_(std::move(run)),
        options_(options),
        on_change_(elastic.on_change),
        generations_(options.heartbeat, generation, elastic.least_workers, patience, places) {}

  bool late_one_waits() const { return late_one_waits_.load(std::memory_order_relaxed); }

  void handle(const std::shared_ptr<detail::served_call>& to, wire::envelope& received) override {
    const std::lock_guard lock(mutex_);
    try {
      dispatch(call{to}, received);
    } catch (const wire::malformed_message& e) {
      to->refuse(detail::status_code::invalid_argument, e.what());
    }
    settle(clock::now());
  }
  void forget(const detail::served_call& to) override {
    const std::lock_guard lock(mutex_);
    for (const call& c : take_waiting([&](const call& w) { return w.to.get() == &to; })) {
      const bool shows_life = c.awaited.empty() && c.method() != methods::enter;
      if (!shows_life || c.from().generation != generation() || refused(c)) continue;
      if (c.method() == methods::form_again) generations_.withdraw(c.from().rank);
      members().lose_connection(c.from().rank, clock::now());
      stir_.notify_all();
    }
  }
  /// Answers calls whose time is up and checks the members, until the service is closed.
  void watch() {
    const auto pause = std::clamp(options_.heartbeat.interval / 10, std::chrono::milliseconds(5), std::chrono::milliseconds(100));
    std::unique_lock lock(mutex_);
    while (!closed_) {
      stir_.wait_for(lock, pause);
      const auto now = clock::now();
      members().look(now);
      settle(now);
      for (call& c : take_waiting([&](const call& w) { return now >= w.due; })) time_is_up(c, now);
      const auto slow = members().slow_member(now);
      const auto news = std::exchange(news_, {});
      lock.unlock();
      if (slow && options_.on_slow_process) options_.on_slow_process(*slow);
      for (const std::string& change : news)
        if (on_change_) on_change_(change);
      lock.lock();
    }
  }
  /// Ends calls that wait. Processes whose training continues detect it with their next message to this coordinator.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    stir_.notify_all();
    for (const call& c : take_waiting([](const call&) { return true; })) c.to->refuse(out_of_range, the_end);
  }

 private:
  /// Answers a message, or lets its call wait.
  void dispatch(call c, const wire::envelope& received) {
    const auto now = clock::now();
    if (c.from().run != run_)
      return c.to->refuse(failed_precondition, detail::text_of({"this process belongs to run '", printable(c.from().run, 100),
                                                                "', the coordinator to another one"}));
    const bool comes_late = is_late(c);
    if (c.from().generation != generation() && !comes_late) return c.to->refuse(failed_precondition, not_this_generation(c));
    const bool ends = c.method() == methods::fail || c.method() == methods::leave;
    if (const std::string why = generations_.end(); !why.empty() && !ends) return c.to->refuse(aborted, why);
    if (closed_ && !ends) return c.to->refuse(out_of_range, the_end);
    if (comes_late) return come_late(c, received, now);
    if (c.method() == methods::join) return join(c, received, now);
    if (is_member(c))
      if (const auto why = refused(c)) return c.to->refuse(failed_precondition, *why);
    if (is_member(c)) c.to->is_of_member();
    heartbeat_message beat;
    if (c.method() == methods::beat) {
      beat = received.body<heartbeat_message>();
      c.knows_failure = beat.knows_failure;
    }
    if (has_failed() && !ends && !c.knows_failure && c.method() != methods::form_again && c.method() != methods::announce)
      return c.to->refuse(aborted, members().failure());
    if (c.method() == methods::set) return set(c, received);
    if (c.method() == methods::get) return get(c, received);
    if (!is_member(c))
      return c.to->refuse(invalid_argument, detail::text_of({"only a member may call ", printable(c.method(), 100)}));
    if (c.method() == methods::get_all) return get_all(c, received, now);
    if (c.method() == methods::beat) {
      beat.waits.what = printable(beat.waits.what, 100), beat.waits.what_call = printable(beat.waits.what_call, 100);
      members().beat(c.from().rank, beat.waits, now, beat.knows_notice);
      c.knows_notice = beat.knows_notice;
      return wait(c, now + options_.heartbeat.interval);
    }
    if (c.method() == methods::fail) {
      const auto report = received.body<failure_report>();
      members().fail(c.from().rank, report.blames, printable(report.why, 2000), now);
      return c.to->answer(value_answer{members().failure()});
    }
    if (c.method() == methods::announce) {
      announcement what = received.body<announcement>();
      what.trouble = printable(what.trouble, 2000), what.work = printable(what.work, 200);
      members().announce(c.from().rank, what, now);
      return what.trouble.empty() ? c.to->answer(empty_message{}) : wait(c, now + time_to_tell_all);
    }
    if (c.method() == methods::leave) {
      members().leave(c.from().rank, now);
      return c.to->answer(empty_message{});
    }
    if (c.method() == methods::form_again && generations_.is_elastic()) {
      generations_.come(c.from().rank, now, received.body<form_again_request>().is_spare);
      return wait(c, clock::time_point::max());
    }
    c.to->refuse(unimplemented, detail::text_of({"the coordinator has no method ", printable(c.method(), 100)}));
  }
  /// Answers a call that has waited for as long as it may.
  void time_is_up(call& c, clock::time_point now) {
    if (c.method() == methods::enter) {
      c.to->refuse(deadline_exceeded, "the others have not reached the end of a step, or another process has taken its place");
    } else if (c.method() == methods::join) {
      if (!refused(c)) members().pause(c.from().rank, now);
      c.to->answer(join_answer{.absent = members().absent()});
    } else if (c.method() == methods::get_all) {
      c.to->answer(values_.missing(c.wanted, c.found));
    } else if (c.method() == methods::beat) {
      c.to->answer(last_notice());
    } else {
      c.to->answer(empty_message{});
    }
  }
  notice last_notice() { return {members().notice(), members().first_trouble(), members().first_work()}; }
  /// Answers the waiting heartbeats at once with a new announcement.
  void tell_notices() {
    const auto is_new = [&](const call& w) { return w.method() == methods::beat && w.knows_notice != members().notice(); };
    for (const call& c : take_waiting(is_new)) c.to->answer(last_notice());
    if (members().all_know_notice())
      for (const call& c : take_waiting([](const call& w) { return w.method() == methods::announce; }))
        c.to->answer(empty_message{});
  }

  /// The data of a process that joins, and the time that it waits.
  static std::pair<member, std::chrono::milliseconds> read_member(const call& c, const wire::envelope& received) {
    auto [m, timeout] = received.body<join_request>();
    m.rank = c.from().rank, m.incarnation = c.from().incarnation;
    m.name = printable(m.name, 100), m.host = printable(m.host, 300);
    m.agreement.text = printable(m.agreement.text, agreement::most), m.agreement.hash = printable(m.agreement.hash, 64);
    return {std::move(m), bounded(timeout)};
  }
  void join(call& c, const wire::envelope& received, clock::time_point now) {
    const auto [who, timeout] = read_member(c, received);
    if (const auto why = members().join(who, now)) return c.to->refuse(failed_precondition, *why);
    c.to->is_of_member();
    wait(c, now + timeout);
    if (!members().is_complete()) return;
    const join_answer all = joined();
    for (const call& w : take_waiting([](const call& waiting) { return waiting.method() == methods::join; })) w.to->answer(all);
  }
  /// True if a process that is not in the first generation wants to take part after that was complete.
  bool is_late(const call& c) const {
    if (!generations_.is_elastic() || !generations_.now().is_complete() || !is_member(c)) return false;
    return c.method() == methods::enter || (c.method() == methods::join && refused(c));
  }
  void come_late(call& c, const wire::envelope& received, clock::time_point now) {
    const auto [who, timeout] = read_member(c, received);
    if (const auto why = generations_.refuses_late(who)) return c.to->refuse(failed_precondition, *why);
    if (c.method() == methods::join) return c.to->answer(join_answer{});
    if (!refused(c) && !members().is_gone(c.from().rank, now)) return c.to->answer(joined());  // asks again
    c.who = who;
    c.to->is_of_member();
    wait(c, now + timeout);
  }
  join_answer joined() const { return {.all = generations_.current()}; }

  /// Processes the consequences of a message or of a time-out.
  void settle(clock::time_point now) {
    std::vector<member> late;
    for (const call& w : waiting_)
      if (w.method() == methods::enter && generations_.has_place_for(w.who, now)) late.push_back(w.who);
    late_one_waits_.store(generations_.is_elastic() && members().is_complete() && generations_.can_grow(late),
                          std::memory_order_relaxed);
    if (const auto change = generations_.form(late, now)) {
      news_.push_back(*change);
      stir_.notify_all();
      values_.clear();
      shared_.clear();
      for (const call& c : take_waiting([&](const call& w) { return w.method() != methods::enter || !refused(w); })) {
        if (c.method() == methods::form_again || c.method() == methods::enter)
          c.to->answer(joined());
        else
          c.to->refuse(failed_precondition, not_this_generation(c));
      }
    }
    tell_failure();
    tell_notices();
  }

  void set(call& c, const wire::envelope& received) {
    auto [key, value] = received.body<set_request>();
    if (!coordinator_values::is_key(key)) return c.to->refuse(invalid_argument, coordinator_values::no_key(key));
    const std::string* const kept = values_.set(key, std::move(value));
    if (kept == nullptr) return c.to->refuse(resource_exhausted, "the store is full");
    shared_.value_is_set(key);
    for (call& w : take_waiting([&, &key = key](const call& waiting) { return waiting.awaited == key; }))
      w.method() == methods::get ? w.to->answer(value_answer{*kept}) : find_all(w);
    c.to->answer(empty_message{});
  }
  void get(call& c, const wire::envelope& received) {
    const auto [key] = received.body<get_request>();
    if (!coordinator_values::is_key(key)) return c.to->refuse(invalid_argument, coordinator_values::no_key(key));
    if (const std::string* const found = values_.find(key)) return c.to->answer(value_answer{*found});
    c.awaited = key;
    wait(c, clock::time_point::max());
  }
  void get_all(call& c, const wire::envelope& received, clock::time_point now) {
    c.wanted = received.body<get_all_request>();
    if (c.wanted.count < 1 || c.wanted.count > membership::most_members)
      return c.to->refuse(invalid_argument,
                          detail::text_of({"get_all takes 1 to ", membership::most_members, " values, not ", c.wanted.count}));
    if (const std::string last = coordinator_values::key_of(c.wanted, c.wanted.count - 1);
        c.wanted.prefix.empty() || !coordinator_values::is_key(last))
      return c.to->refuse(invalid_argument, coordinator_values::no_key(c.wanted.prefix.empty() ? c.wanted.prefix : last));
    c.due = now + bounded(c.wanted.timeout);
    find_all(c);
  }
  /// Answers get_all, or waits for the first value that is missing.
  void find_all(call& c) {
    const int count = c.wanted.count;
    if (const auto answer = shared_.find(c.wanted)) return c.to->answer(*answer);
    while (c.found < count && values_.find(coordinator_values::key_of(c.wanted, c.found))) ++c.found;
    if (c.found < count) {
      c.awaited = coordinator_values::key_of(c.wanted, c.found);
      return wait(c, c.due);
    }
    wire::sealed_message sealed = wire::sealed(values_.all(c.wanted));
    if (sealed.size() > largest_answer)
      return c.to->refuse(resource_exhausted,
                          detail::text_of({count, " values have ", sealed.size(), " bytes, of at most ", largest_answer}));
    if (!shared_.has_room_for(sealed.size()))  // the client asks again
      return c.to->refuse(unavailable, "the coordinator is still sending values to other processes");
    c.to->answer(shared_.keep(c.wanted, std::move(sealed.head)));
  }

  /// Lets a call wait until something answers it, or until it is due.
  void wait(call& c, clock::time_point due) {
    if (!is_member(c) && std::ranges::count_if(waiting_, [](const call& w) { return !is_member(w); }) >= most_others_waiting)
      return c.to->refuse(unavailable, "too many processes that are not members are waiting for values");
    c.due = due;
    waiting_.push_back(std::move(c));
  }
  /// Ends the calls that would wait in vain after a failure, and notifies members of it at once.
  void tell_failure() {
    if (const std::string why = generations_.end(); !why.empty()) {
      for (const call& c : take_waiting([](const call&) { return true; })) c.to->refuse(aborted, why);
    } else if (has_failed()) {
      const auto is_unaware = [](const call& w) {
        return !w.awaited.empty() || (w.method() == methods::beat && !w.knows_failure);
      };
      for (const call& c : take_waiting(is_unaware)) c.to->refuse(aborted, members().failure());
    }
  }
  bool has_failed() const { return !generations_.now().failure().empty(); }
  membership& members() { return generations_.now(); }
  std::uint64_t generation() const { return generations_.number(); }
  std::string not_this_generation(const call& c) const {
    const std::string now = std::to_string(generation()), its = std::to_string(c.from().generation);
    if (generations_.is_elastic() && c.from().generation < generation())
      return detail::text_of({"the training goes on as generation ", now,
                              " of the cluster without this process, which is still in generation ", its,
                              ": the others lost contact with it, but it may be started again"});
    return detail::text_of({"this is generation ", now, " of the cluster, not ", its});
  }
  static bool is_member(const call& c) { return c.from().rank >= 0; }
  /// The reason why a message is refused: its sender never joined, or another process has its rank.
  std::optional<std::string> refused(const call& c) const {
    return generations_.now().refuses(c.from().rank, c.from().incarnation);
  }

  /// Removes the calls with which(call) from the list of waiting calls.
  template <class F>
  std::vector<call> take_waiting(F&& which) {
    const auto kept = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const call& c) { return !which(c); });
    std::vector<call> taken(std::make_move_iterator(kept), std::make_move_iterator(waiting_.end()));
    waiting_.erase(kept, waiting_.end());
    return taken;
  }

  static std::chrono::milliseconds bounded(std::chrono::milliseconds timeout) {
    return std::clamp<std::chrono::milliseconds>(timeout, std::chrono::milliseconds(0), std::chrono::hours(24));
  }
  /// The time that an announcement waits for the next heartbeat of each member.
  static constexpr auto time_to_tell_all = std::chrono::milliseconds(500);
  static constexpr const char* the_end = "the coordinator has ended";
  static constexpr int most_others_waiting = 1024;

  const std::string run_;
  const control_options options_;
  const std::function<void(const std::string&)> on_change_;
  std::mutex mutex_;
  std::condition_variable stir_;  // wakes the watching thread before its pause is over
  coordinator_values values_;
  shared_answer shared_;
  generations generations_;
  std::vector<std::string> news_;
  std::atomic<bool> late_one_waits_{false};
  std::vector<call> waiting_;
  bool closed_ = false;
};

}  // namespace strata::control
