// The connection of a process to the coordinator. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/membership.hpp>
#include <strata/control/server_connection.hpp>
#include <strata/control/waiting_notice.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <strata/net/message_connection.hpp>
#include <strata/net/random_token.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata::control {

/// The coordinator's key/value store, and this process as one of its members. It may be used before the coordinator is started.
/// All functions throw communication_error, with the reason, if the coordinator refuses, cannot be reached in time, or is lost.
class coordinator_client final : public core::key_value_store {
  using clock = std::chrono::steady_clock;

 public:
  using milliseconds = std::chrono::milliseconds;

  /// Throws strata_error if the address is open to other machines without a proof.
  coordinator_client(core::endpoint where, std::string run, const control_options& options = {}, std::uint64_t generation = 0)
      : where_(std::move(where)),
        from_{.run = std::move(run), .generation = generation},
        heartbeat_(options.heartbeat),
        on_waiting_(options.on_waiting),
        connection_(std::make_shared<detail::server_connection>(where_, options, largest_answer)) {}
  /// Makes the client of the same process in another generation, over the same connection.
  coordinator_client(const coordinator_client& before, std::uint64_t generation)
      : where_(before.where_),
        from_(before.from_),
        heartbeat_(before.heartbeat_),
        on_waiting_(before.on_waiting_),
        connection_(before.connection_) {
    from_.generation = generation;
    was_there_ = true;
    connected_ = clock::now();
  }

  void set(const std::string& key, const std::string& value) override {
    exchange<empty_message>(methods::set, always(set_request{key, value}), default_timeout,
                            detail::text_of({"did not store '", key, "'"}));
  }
  std::string get(const std::string& key, milliseconds timeout) override {
    return exchange<value_answer>(methods::get, always(get_request{key}), timeout,
                                  detail::text_of({"did not return '", key, "'"}))
        .value;
  }
  /// Gets all values in one message. For members only; the coordinator lists the missing values.
  std::vector<std::string> get_all(const std::string& prefix, int count, milliseconds timeout) override {
    const auto wanted = [&](milliseconds left) { return sealed(get_all_request{prefix, count, left}); };
    auto answer = exchange<get_all_answer>(methods::get_all, wanted, timeout,
                                           detail::text_of({"did not return '", prefix, "0', ..."}), for_answer);
    if (answer.missing > 0 && !answer.first_missing.empty() && answer.first_missing.size() <= std::size_t(answer.missing))
      throw core::missing_values(prefix, answer.first_missing, std::size_t(answer.missing), timeout);
    if (answer.missing != 0 || answer.values.size() != std::size_t(count))
      throw communication_error(detail::text_of(
          {"the coordinator at ", to_string(where_), " sent ", answer.values.size(), " values instead of ", count}));
    return std::move(answer.values);
  }

  /// Returns when all processes have joined and agree. `name_of(rank)` names a process in errors. Returns nothing if the training
  /// is under way without this process, which may then `enter`.
  std::optional<formation> join(member m, milliseconds timeout, const std::function<std::string(int)>& name_of) {
    m.incarnation = detail::random_token();
    from_.rank = m.rank, from_.incarnation = m.incarnation;
    const auto wanted = [&](milliseconds left) { return sealed(join_request{m, left}); };
    detail::waiting_notice notice(on_waiting_, timeout);
    for (;;) {  // asks again after each notice
      const auto [status, received] = insist(methods::join, wanted, notice.pause(), for_answer);
      if (status.ok()) {
        auto answer = understood<join_answer>(received);
        const auto& [missing, lost, gave_up] = answer.absent;
        if (missing.empty() && lost.empty() && gave_up.empty()) {
          if (answer.all.ranks.empty()) return std::nullopt;
          return std::move(answer.all);
        }
        if (notice.left() == milliseconds(0)) give_up(answer.absent, name_of, timeout);
        std::vector<std::string> awaited = names_of(missing, name_of);
        awaited.insert(awaited.end(), lost.begin(), lost.end());
        awaited.insert(awaited.end(), gave_up.begin(), gave_up.end());
        notice.tell(detail::text_of(
            {m.name, " waits for ", listed(awaited, 8), " to register with the coordinator at ", to_string(where_)}));
      } else if (is_timeout(status) && !(was_there_ && is_gone()) && notice.left() > milliseconds(0)) {
        const std::string what = detail::text_of({m.name, " waits for the coordinator at ", to_string(where_)});
        notice.tell(status.has_reason ? detail::with_reason(what, status) : what + ", which does not answer");
      } else {
        throw_reason(status);
        throw refusal(status, timeout, detail::text_of({"did not admit ", m.name}));
      }
    }
  }
  /// Requests admission for a late process. Returns when it is in a generation of the training.
  formation enter(const member& m, milliseconds timeout) {
    const auto wanted = [&](milliseconds left) { return sealed(join_request{m, left}); };
    const auto [status, answer] = insist(methods::enter, wanted, timeout, for_answer);
    if (status.ok()) return formation_in(answer);
    throw_reason(status);
    throw refusal(status, timeout, detail::text_of({"did not admit ", m.name, " to the running training"}));
  }
  /// Requests the next generation for a member, after a failure or to admit others. Returns when that generation has begun.
  /// Repeats the request as long as `may_last_longer` returns true. is_spare: it lacks the newest state of the training.
  formation form_again(
      milliseconds timeout, const std::function<bool()>& may_last_longer = [] { return false; }, bool is_spare = false) {
    // One interval of patience is left for a lost connection.
    connected_ = clock::now() - (heartbeat_.missed - 1) * heartbeat_.interval;
    detail::reply last = insist(methods::form_again, always(form_again_request{is_spare}), timeout);
    while (last.status.code == detail::status_code::deadline_exceeded && may_last_longer())
      last = insist(methods::form_again, always(form_again_request{is_spare}), timeout);
    const auto& [status, answer] = last;
    if (status.ok()) return formation_in(answer);
    throw_reason(status);
    if (status.code == detail::status_code::unavailable)
      throw communication_error(detail::text_of({"the coordinator at ", to_string(where_), " is lost: ", status.text}));
    throw refusal(status, timeout, "did not form another generation of the cluster");
  }

  /// Sends a heartbeat with what this process waits for. Returns when the next heartbeat is due or something has happened, with
  /// the announcements of members. `knows_failure`: this process has been notified that its generation has failed, and will
  /// request the next one. `knows_notice`: the number of the last notice that it has received.
  std::pair<detail::call_status, notice> beat(const core::wait_state::report& waits, bool knows_failure,
                                              std::uint64_t knows_notice, clock::time_point deadline) {
    const auto [status, answer] = attempt(methods::beat, sealed(heartbeat_message{waits, knows_failure, knows_notice}), deadline);
    return {status, status.ok() ? understood<notice>(answer) : notice{}};
  }
  /// Returns when all members have received it, or cannot be reached.
  void announce(const announcement& what) { attempt(methods::announce, sealed(what), clock::now() + std::chrono::seconds(1)); }
  /// Reports an error of this process. Returns the first error that the coordinator has; empty if it cannot be reached.
  std::string fail(int blames, const std::string& why) {
    const auto [status, answer] =
        attempt(methods::fail, sealed(failure_report{blames, why}), clock::now() + std::chrono::seconds(1));
    return status.ok() ? understood<value_answer>(answer).value : "";
  }
  void leave() { attempt(methods::leave, sealed(empty_message{}), clock::now() + std::chrono::seconds(1)); }
  /// Ends the beat that another thread waits in, and all later ones.
  void stop_beating() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (beating_) beating_->cancel();
  }

  const core::endpoint& where() const { return where_; }
  const heartbeat_options& heartbeat() const { return heartbeat_; }

 private:
  using methods = coordinator_methods;
  static constexpr milliseconds default_timeout = std::chrono::seconds(30);
  /// When time is up, the coordinator answers with the missing processes: the client waits that much longer for it.
  static constexpr milliseconds for_answer = std::chrono::seconds(3);

  /// Makes the request, given the remaining time.
  using request = std::function<wire::sealed_message(milliseconds)>;
  template <wire::message M>
  wire::sealed_message sealed(const M& body) const {
    return wire::sealed(from_, body);
  }
  template <wire::message M>
  request always(const M& body) const {
    return [message = sealed(body)](milliseconds) { return message; };
  }

  template <wire::message Answer>
  Answer exchange(const char* method, const request& wanted, milliseconds timeout, const std::string& what,
                  milliseconds after = {}) {
    const auto [status, answer] = insist(method, wanted, timeout, after);
    if (!status.ok()) throw refusal(status, timeout, what);
    return understood<Answer>(answer);
  }
  static bool is_timeout(const detail::call_status& status) {
    return status.code == detail::status_code::deadline_exceeded || status.is_without_connection();
  }
  static std::vector<std::string> names_of(const std::vector<int>& ranks, const std::function<std::string(int)>& name_of) {
    std::vector<std::string> names;
    for (const int r : ranks) names.push_back(name_of(r));
    return names;
  }
  /// "worker 1, worker 2 and 5 more"
  static std::string listed(const std::vector<std::string>& names, std::size_t most) {
    std::string list;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) list += detail::text_of({list.empty() ? "" : ", ", names[i]});
    return names.size() <= most ? list : detail::text_of({list, " and ", names.size() - most, " more"});
  }
  /// The time is up: names the processes that never came or were lost, not those that gave up because of them. If this is the
  /// process of the coordinator, which ends with it, the others get the same reason.
  [[noreturn]] void give_up(const absent_members& absent, const std::function<std::string(int)>& name_of, milliseconds timeout) {
    const auto& [missing, lost, gave_up] = absent;
    const std::string where = detail::text_of({" with the coordinator at ", to_string(where_)});
    const auto had_registered = [&](const std::vector<std::string>& names, const char* then) {
      return names.empty() ? "" : detail::text_of({listed(names, names.size()), " had registered", where, ", but ", then});
    };
    std::string why = missing.empty() ? ""
                                      : detail::text_of({listed(names_of(missing, name_of), missing.size()), " did not register",
                                                         where, " within ", in_words(timeout)});
    if (!lost.empty()) why += (why.empty() ? "" : "; ") + had_registered(lost, "the connection was lost");
    if (why.empty()) why = had_registered(gave_up, "stopped waiting");
    if (from_.rank == 0)
      fail(-1, why);
    else
      leave();
    throw communication_error(why);
  }
  /// Until all have joined, the coordinator may be restarted; one that restarts later would have no members.
  bool is_gone() const { return clock::now() - connected_.load() > heartbeat_.missed * heartbeat_.interval; }
  communication_error refusal(const detail::call_status& status, milliseconds timeout, const std::string& what) const {
    return communication_error(
        detail::text_of({"the coordinator at ", to_string(where_), ' ', what,
                         is_timeout(status) ? detail::text_of({" within ", in_words(timeout)}) : "", ": ", status.text}));
  }
  static void throw_reason(const detail::call_status& status) {
    if (status.code == detail::status_code::failed_precondition || status.code == detail::status_code::aborted)
      throw communication_error(status.text);
  }
  template <wire::message Answer>
  Answer understood(const detail::received_frame& answer) const {
    try {
      return wire::envelope(answer.content()).body<Answer>();
    } catch (const wire::malformed_message& e) {
      throw communication_error(detail::text_of({"the coordinator at ", to_string(where_), " sent a ", e.what()}));
    }
  }
  formation formation_in(const detail::received_frame& answer) const {
    formation all = understood<join_answer>(answer).all;
    if (all.ranks.empty())
      throw communication_error(detail::text_of({"the coordinator at ", to_string(where_), " answered without a generation"}));
    return all;
  }
  static std::string in_words(milliseconds time) { return detail::text_of({time.count(), " ms"}); }

  /// Repeats the request until the coordinator answers; once it has been reached, only until it counts as dead. The answer may
  /// arrive up to `after` later than the time-out.
  detail::reply insist(const char* method, const request& wanted, milliseconds timeout, milliseconds after = {}) {
    const auto deadline = clock::now() + timeout;
    detail::call_status reason;
    detail::refused_connections refused;
    for (;;) {
      auto result = attempt(method, wanted(left(deadline)), deadline + after);
      refused.add(result.status, clock::now());
      if (result.status.is_without_connection()) {
        // The reason why a connection broke or is refused is more useful than a note that later ones were not accepted.
        const bool is_known = reason.code == detail::status_code::unauthenticated;
        if (reason.ok() || !(is_known || detail::refused_connections::is_one(result.status))) reason = result.status;
      } else if (result.status.code != detail::status_code::deadline_exceeded ||
                 result.status.text != detail::calls_of_thread::no_answer || was_there_) {
        return result;
      }
      const auto now = clock::now();
      const bool is_lost = is_gone() || (method == methods::form_again && refused.are_final(now));
      if (now >= deadline || (was_there_ && is_lost)) return {reason.ok() ? result.status : reason, {}};
      std::this_thread::sleep_for(std::min(left(deadline), milliseconds(50)));
    }
  }

  /// Clears beating_ when the call has ended, also if it ended by an exception.
  struct forgets_beat {
    coordinator_client& of;
    const bool beats;
    ~forgets_beat() {
      if (!beats) return;
      const std::lock_guard lock(of.mutex_);
      of.beating_ = nullptr;
    }
  };
  detail::reply attempt(const char* method, wire::sealed_message message, clock::time_point deadline) {
    detail::calls_of_thread calls;
    const bool beats = method == methods::beat;
    if (beats) {
      const std::lock_guard lock(mutex_);
      if (stopped_) return {{detail::status_code::cancelled}, {}};
      beating_ = &calls;
    }
    const forgets_beat ends{*this, beats};
    const auto [connection, why] = connection_->open(deadline);
    if (!connection) return {why, {}};
    was_there_ = true, connected_ = clock::now();
    calls.begin(connection, method, std::move(message), deadline);
    return std::move(calls.next()->end);
  }
  static milliseconds left(clock::time_point deadline) {
    return std::max(std::chrono::duration_cast<milliseconds>(deadline - clock::now()), milliseconds(0));
  }

  core::endpoint where_;
  wire::sender from_;
  heartbeat_options heartbeat_;
  std::function<void(const std::string&)> on_waiting_;
  std::shared_ptr<detail::server_connection> connection_;
  std::atomic<bool> was_there_{false};
  std::atomic<clock::time_point> connected_{};
  std::mutex mutex_;
  detail::calls_of_thread* beating_ = nullptr;
  bool stopped_ = false;
};

}  // namespace strata::control
