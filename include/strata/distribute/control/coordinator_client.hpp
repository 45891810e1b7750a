// What a process asks of the coordinator, from any machine. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/generations.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/control/membership.hpp>
#include <strata/distribute/control/value_list.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

/// The coordinator's store, and the place of this process in its membership. It may be used before the coordinator is there.
/// All members throw communication_error, with the reason, if the coordinator refuses, is not there in time, or is lost.
class coordinator_client final : public key_value_store {
  using clock = std::chrono::steady_clock;

 public:
  using milliseconds = std::chrono::milliseconds;

  /// Throws strata::error if the address is open to other machines without TLS.
  coordinator_client(endpoint where, std::string run, const control_options& options = {}, std::uint64_t generation = 0)
      : where_(std::move(where)), run_(std::move(run)), generation_(std::to_string(generation)), heartbeat_(options.heartbeat) {
    detail::refuse_unprotected(where_, options);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes: a get may wait for minutes
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
    arguments.SetMaxReceiveMessageSize(int(detail::largest_answer));
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // two clients of one process share no connection
    channel_ = grpc::CreateCustomChannel(to_string(where_), detail::client_credentials(options), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }
  /// The same process, over the same connection, in another generation.
  coordinator_client(const coordinator_client& before, std::uint64_t generation)
      : where_(before.where_), run_(before.run_), generation_(std::to_string(generation)), member_(before.member_),
        heartbeat_(before.heartbeat_), channel_(before.channel_), stub_(std::make_unique<grpc::GenericStub>(channel_)) {
    was_there_ = true;
    connected_ = clock::now();
  }

  void set(const std::string& key, const std::string& value) override {
    exchange(detail::set_method, key, always(value), default_timeout, "did not take '" + key + "'");
  }
  std::string get(const std::string& key, milliseconds timeout) override {
    return exchange(detail::get_method, key, always({}), timeout, "did not hand out '" + key + "'");
  }
  /// In one message. The coordinator says who is missing, and only members may ask.
  std::vector<std::string> get_all(const std::string& prefix, int count, milliseconds timeout) override {
    // The prefix is no header, which may neither end in a space nor hold every character.
    const auto wanted = [&](milliseconds left) {
      return std::to_string(count) + ' ' + std::to_string(left.count()) + '\n' + prefix;
    };
    const std::string answer =
        exchange(detail::get_all_method, {}, wanted, timeout, "did not hand out '" + prefix + "0', ...", for_answer);
    if (answer.starts_with(detail::some_are_missing)) {
      std::istringstream words(answer.substr(1));
      std::size_t all_missing = 0;
      words >> all_missing;
      std::vector<int> first;
      for (int i; words >> i;) first.push_back(i);
      if (first.empty() || first.size() > all_missing) throw_no_answer();
      throw missing_values(prefix, first, all_missing, timeout);
    }
    auto values = detail::read_list(std::string_view(answer).substr(std::min<std::size_t>(answer.size(), 1)));
    if (!answer.starts_with(detail::all_are_here) || !values || values->size() != std::size_t(count)) throw_no_answer();
    return std::move(*values);
  }

  /// Returns when all have joined and say the same. `name_of` tells what a rank is called. Nothing is returned if the training is
  /// under way without this process: then it may `enter`.
  std::optional<formation> join(member m, milliseconds timeout, const std::function<std::string(int)>& name_of) {
    std::random_device random;
    m.incarnation = std::uint64_t(random()) << 32 | random();
    member_ = std::to_string(m.rank) + ' ' + std::to_string(m.incarnation);
    const auto wanted = [&](milliseconds left) { return text_of(m, left); };
    const auto [status, answer] = insist(detail::join_method, {}, wanted, timeout, for_answer);
    if (status.ok()) return answer == detail::is_late ? std::nullopt : std::optional(understood(answer));
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      std::istringstream ranks(status.error_message());
      std::string missing;
      for (int r; ranks >> r;) missing += (missing.empty() ? "" : ", ") + name_of(r);
      if (!missing.empty())
        throw communication_error(missing + " did not come to the coordinator at " + to_string(where_) + " within " + in_words(timeout));
    }
    throw_reason(status);
    throw refusal(status, timeout, "did not let " + m.name + " in");
  }
  /// Of a late process: returns when it is in a generation of the training.
  formation enter(const member& m, milliseconds timeout) {
    const auto wanted = [&](milliseconds left) { return text_of(m, left); };
    const auto [status, answer] = insist(detail::enter_method, {}, wanted, timeout, for_answer);
    if (status.ok()) return understood(answer);
    throw_reason(status);
    throw refusal(status, timeout, "did not let " + m.name + " into the training that is under way");
  }
  /// Of a member of a generation that has failed, or takes others in: returns when there is the next one, with this process in it.
  formation form_again(milliseconds timeout) {
    connected_ = clock::now() - (heartbeat_.missed - 1) * heartbeat_.interval;  // that much patience is left for a lost connection
    const auto [status, answer] = insist(detail::form_again_method, {}, always({}), timeout);
    if (status.ok()) return understood(answer);
    throw_reason(status);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
      throw communication_error("the coordinator at " + to_string(where_) + " is lost: " + status.error_message());
    throw refusal(status, timeout, "did not form another generation of the cluster");
  }

  /// Says that this process is alive, what it waits for, and listens until the next time to do so. `knows`: that its generation has
  /// failed; it will come to the next one.
  grpc::Status beat(const wait_state::report& waits, bool knows, clock::time_point deadline) {
    const std::string text = (knows ? detail::failure_is_known : "") + std::to_string(waits.on) + ' ' +
                             std::to_string(waits.waited.count()) + ' ' +
                             std::to_string(waits.altogether.count()) + '\n' + (waits.what.empty() ? "-" : waits.what);
    return attempt(detail::beat_method, {}, text, deadline).first;
  }
  /// Reports what went wrong here; returns what went wrong first, as the coordinator sees it. Says nothing if it is lost as well.
  std::string fail(int on, const std::string& why) {
    const auto [status, answer] = attempt(detail::fail_method, {}, std::to_string(on) + '\n' + why, clock::now() + std::chrono::seconds(1));
    return status.ok() ? answer : "";
  }
  void leave() { attempt(detail::leave_method, {}, {}, clock::now() + std::chrono::seconds(1)); }
  /// Ends a beat that another thread is in, and all later ones.
  void stop_beating() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (beating_) beating_->TryCancel();
  }

  const endpoint& where() const { return where_; }
  const heartbeat_options& heartbeat() const { return heartbeat_; }

 private:
  static constexpr milliseconds default_timeout = std::chrono::seconds(30);
  /// A coordinator that is asked to wait says who is missing when time is up: that is worth waiting for.
  static constexpr milliseconds for_answer = std::chrono::seconds(3);

  /// The text of a message, given the time that is left.
  using message = std::function<std::string(milliseconds)>;
  static message always(std::string text) {
    return [text = std::move(text)](milliseconds) { return text; };
  }

  std::string exchange(const char* method, const std::string& key, const message& value, milliseconds timeout,
                       const std::string& what, milliseconds after = {}) {
    auto [status, answer] = insist(method, key, value, timeout, after);
    if (!status.ok()) throw refusal(status, timeout, what);
    return std::move(answer);
  }
  communication_error refusal(const grpc::Status& status, milliseconds timeout, const std::string& what) const {
    const bool in_vain = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return communication_error("the coordinator at " + to_string(where_) + ' ' + what + (in_vain ? " within " + in_words(timeout) : "") + ": " +
                               status.error_message());
  }
  static void throw_reason(const grpc::Status& status) {
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION || status.error_code() == grpc::StatusCode::ABORTED)
      throw communication_error(status.error_message());
  }
  formation understood(const std::string& answer) const {
    if (auto all = read_formation(answer)) return std::move(*all);
    throw_no_answer();
  }
  [[noreturn]] void throw_no_answer() const {
    throw communication_error("the coordinator at " + to_string(where_) + " gave an answer that is none");
  }
  static std::string text_of(const member& m, milliseconds timeout) {
    return std::to_string(m.rank) + ' ' + std::to_string(m.size) + ' ' + std::to_string(m.pid) + ' ' +
           std::to_string(timeout.count()) + '\n' + m.name + '\n' + m.host + '\n' + m.agreement;
  }
  static std::string in_words(milliseconds time) { return std::to_string(time.count()) + " ms"; }

  /// Tries until the coordinator is there; but once it was, only until it counts as dead. The last answer may come that much
  /// `after` time is up.
  std::pair<grpc::Status, std::string> insist(const char* method, const std::string& key, const message& value,
                                              milliseconds timeout, milliseconds after = {}) {
    const auto deadline = clock::now() + timeout;
    grpc::Status reason;
    detail::refused_connections refused;
    for (;;) {
      if (channel_->WaitForConnected(std::chrono::system_clock::now() + std::min(left(deadline), milliseconds(200)))) {
        was_there_ = true;
        connected_ = clock::now();
      }
      auto result = attempt(method, key, value(left(deadline)), deadline + after);
      refused.add(result.first, clock::now());
      if (result.first.error_code() == grpc::StatusCode::UNAVAILABLE) {
        // Why a connection broke says more than that there is none afterwards.
        if (reason.ok() || !detail::refused_connections::is_one(result.first)) reason = result.first;
      } else if (result.first.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED || result.first.error_message() != "Deadline Exceeded" || was_there_) {
        return result;
      }
      const auto now = clock::now();
      // Until all are there, the coordinator may be started again; after that it would know nobody.
      const bool is_gone = now - connected_.load() > heartbeat_.missed * heartbeat_.interval ||
                           (method == detail::form_again_method && refused.are_final(now));
      if (now >= deadline || (was_there_ && is_gone)) return {reason.ok() ? result.first : reason, {}};
      std::this_thread::sleep_for(std::min(left(deadline), milliseconds(50)));
    }
  }

  std::pair<grpc::Status, std::string> attempt(const char* method, const std::string& key, const std::string& value, clock::time_point deadline) {
    grpc::ClientContext context;
    context.AddMetadata(detail::run_header, run_);
    context.AddMetadata(detail::generation_header, generation_);
    context.AddMetadata(detail::key_header, key);
    if (!member_.empty()) context.AddMetadata(detail::member_header, member_);
    context.set_deadline(std::chrono::system_clock::now() + left(deadline));
    const bool beats = method == detail::beat_method;
    if (beats) {
      const std::lock_guard lock(mutex_);
      if (stopped_) return {grpc::Status::CANCELLED, {}};
      beating_ = &context;
    }
    grpc::ByteBuffer answer;
    const grpc::Status status = detail::unary_call(*stub_, context, method, detail::buffer_of(value), answer);
    if (beats) {
      const std::lock_guard lock(mutex_);
      beating_ = nullptr;
    }
    return {status, status.ok() ? detail::text_of(answer) : std::string()};
  }
  static milliseconds left(clock::time_point deadline) {
    return std::max(std::chrono::duration_cast<milliseconds>(deadline - clock::now()), milliseconds(0));
  }

  endpoint where_;
  std::string run_, generation_, member_;
  heartbeat_options heartbeat_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::atomic<bool> was_there_{false};
  std::atomic<clock::time_point> connected_{};
  std::mutex mutex_;
  grpc::ClientContext* beating_ = nullptr;
  bool stopped_ = false;
};

}  // namespace strata
