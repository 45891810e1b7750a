// A parameter server on the network: calls that a parameter_store answers. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/message_server.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <strata/parameter_server/parameter_messages.hpp>
#include <strata/parameter_server/parameter_snapshots.hpp>
#include <strata/parameter_server/parameter_store.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata::core {

/// Serves one store until it is destroyed.
template <class T, optimizer Optimizer>
class parameter_service {
 public:
  using store = parameter_store<T, Optimizer>;

  /// `program` describes what is trained; workers of another program are refused.
  /// Throws strata_error if it cannot listen at `where`, or if the address is open to other machines without a proof.
  parameter_service(const endpoint& where, std::string name, std::string run, std::string program, store& parameters,
                    const control_options& control = {}, std::uint64_t generation = 0)
      : service_(std::move(name), std::move(run), generation, std::move(program), parameters),
        server_(where, "the parameter server", service_, control, limits_of(parameters)) {}
  ~parameter_service() { service_.close(); }
  parameter_service(const parameter_service&) = delete;
  parameter_service& operator=(const parameter_service&) = delete;

 private:
  class service final : public detail::message_service {
    using call = std::shared_ptr<detail::served_call>;
    using methods = detail::parameter_methods;
    using enum detail::status_code;

   public:
    service(std::string name, std::string run, std::uint64_t generation, std::string program, store& parameters)
        : name_(std::move(name)),
          run_(std::move(run)),
          generation_(generation),
          program_(std::move(program)),
          store_(parameters) {}

    void handle(const call& c, wire::envelope& received) override {
      const wire::sender& from = c->from;
      if (from.run != run_ || from.generation != generation_)
        return c->refuse(failed_precondition,
                         detail::text_of({name_, " belongs to another run: the clusters differ, or STRATA_RUN_ID does"}));
      const int workers = int(store_.workers());
      if (from.rank < 0 || from.rank >= workers)
        return c->refuse(invalid_argument,
                         detail::text_of({"there is no worker with rank ", from.rank, " among the ", workers, " of ", name_}));
      if (c->method == methods::join)
        join(c, received);
      else if (c->method == methods::leave)
        leave(*c);
      else if (c->method == methods::announce)
        announce(*c, received);
      else if (c->method == methods::assign)
        assign(*c, received);
      else if (c->method == methods::pull)
        pull(c, received);
      else if (c->method == methods::push)
        push(c, received);
      else
        c->refuse(unimplemented, detail::text_of({name_, " has no such method"}));
    }
    void forget(const detail::served_call& c) override {
      for (int k = 0; k < store_.shards(); ++k) store_.forget(std::uint32_t(k), &c);
    }
    void close() { store_.close(); }

   private:
    static auto responder(const call& c) {
      return [c](parameter_answer<T> a) { answer(*c, std::move(a)); };
    }
    static auto elements_of(wire::envelope& received) {
      return [&received](void* to, std::size_t bytes) { received.read(to, bytes); };
    }
    void assign(detail::served_call& c, wire::envelope& received) {
      const auto what = received.body<detail::assign_message>();
      answer(c,
             store_.assign(c.from.rank, c.from.incarnation, what.shard, what.is_initial, received.left(), elements_of(received)));
    }
    void pull(const call& c, const wire::envelope& received) {
      const auto what = received.body<detail::pull_message>();
      if (what.wants_rows)
        store_.pull_rows(c->from.rank, c->from.incarnation, what.shard, what.rows, c.get(), responder(c));
      else
        store_.pull(c->from.rank, c->from.incarnation, what.shard, what.had_weights, c.get(), responder(c));
    }
    void push(const call& c, wire::envelope& received) {
      auto what = received.body<detail::push_message>();
      push_request p{.worker = c->from.rank,
                     .incarnation = c->from.incarnation,
                     .step = what.step,
                     .learning_rate = what.learning_rate,
                     .samples = what.samples,
                     .leaves = what.leaves,
                     .rows = std::move(what.rows),
                     .metric_sums = std::move(what.metric_sums)};
      store_.push(std::move(p), what.shard, c.get(), received.left(), elements_of(received), responder(c));
    }
    /// The worker is lost when the connection over which it has joined ends.
    void join(const call& c, const wire::envelope& received) {
      const int rank = c->from.rank;
      const std::uint64_t incarnation = c->from.incarnation;
      control::member who = received.body<control::join_request>().who;
      who.rank = rank, who.incarnation = incarnation;
      if (who.agreement != program_)
        return c->refuse(failed_precondition, control::disagreement(name_, "this process does", program_, who.agreement));
      who.agreement = {};  // is not kept
      const long connection = store_.join(std::move(who));
      if (connection < 0)
        return c->refuse(failed_precondition, detail::text_of({"this process has been replaced by another one at ", name_}));
      c->is_of_member([this, rank, incarnation, connection] { store_.lose(rank, incarnation, connection); });
      c->answer(control::empty_message{});
    }
    void leave(detail::served_call& c) {
      store_.leave(c.from.rank, c.from.incarnation);
      answer(c, {});
    }
    void announce(detail::served_call& c, const wire::envelope& received) {
      store_.announce(c.from.rank, c.from.incarnation, control::printable(received.body<control::announcement>().trouble, 2000));
      answer(c, {});
    }
    static void answer(detail::served_call& c, parameter_answer<T> a) {
      if (a.why == detail::refusal::invalid) return c.refuse(invalid_argument, a.text);
      if (a.why == detail::refusal::empty) return c.refuse(not_found, a.text);
      if (a.why == detail::refusal::fenced) return c.refuse(failed_precondition, a.text);
      if (a.why == detail::refusal::stalled) return c.refuse(aborted, a.text);
      std::vector<wire::shared_bytes> elements;
      const T* const weights = a.weights.get();
      if (weights) elements.push_back(wire::shared_array(std::move(a.weights), weights, std::size_t(a.count)));
      c.answer(wire::sealed(detail::weights_answer{a.version, std::move(a.metric_sums)}, std::move(elements)));
    }

    std::string name_, run_;
    std::uint64_t generation_;
    control::agreement program_;
    store& store_;
  };

  /// A worker makes one call per shard, and repeats calls that were interrupted. All workers may do so at once.
  static detail::server_limits limits_of(const store& parameters) {
    // The list of rows needs less space than the rows, and the metric sums are few.
    return {.largest_message = std::size_t(parameters.most_parts() + 1) * parameters.bytes_of_largest() + (256 << 10),
            .calls = std::size_t(2 * parameters.shards() + 8),
            .members = int(parameters.workers()),
            .pings = {}};
  }

  service service_;
  detail::message_server server_;
};

/// Saves snapshots, beside the requests of workers, until the chief has left and all other workers have left or are lost; then
/// returns.
/// Throws communication_error if no worker joins in time, or if all are lost before the chief has left.
template <class T, optimizer Optimizer>
void serve_until_over(parameter_store<T, Optimizer>& parameters, const std::string& chief,
                      std::chrono::milliseconds start_timeout, parameter_snapshots snapshots = {}) {
  using namespace std::chrono_literals;
  const auto began = std::chrono::steady_clock::now();
  std::future<void> saving;
  for (;; std::this_thread::sleep_for(50ms)) {
    parameters.tick();
    const bool saves = saving.valid() && saving.wait_for(0ms) == std::future_status::timeout;
    if (!saves && snapshots.is_due(parameters))
      saving = std::async(std::launch::async, [&] { snapshots.save_when_due(parameters); });
    if (parameters.is_deserted()) {
      if (saving.valid()) saving.wait();
      if (parameters.chief_has_left()) return snapshots.remove();
      const std::string trouble = parameters.trouble_of(0);
      throw communication_error(
          detail::text_of({"all workers are gone, but ", chief, " has not reported that the training is over",
                           trouble.empty() ? "" : "; ", trouble}));
    }
    if (!parameters.has_had_members() && std::chrono::steady_clock::now() - began > start_timeout)
      throw communication_error(detail::text_of(
          {"no worker has registered within ", std::chrono::duration_cast<std::chrono::seconds>(start_timeout).count(), " s"}));
  }
}

}  // namespace strata::core
