// A parameter server on the network: gRPC calls that a parameter_store answers. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <strata/base/text.hpp>
#include <strata/control/callers.hpp>
#include <strata/control/control_channel.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/guarded_server.hpp>
#include <strata/control/status_text.hpp>
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
        server_(where, "the parameter server", service_, control, limits_of(parameters), service_.who_calls()) {}
  ~parameter_service() { service_.close(); }
  parameter_service(const parameter_service&) = delete;
  parameter_service& operator=(const parameter_service&) = delete;

 private:
  class service final : public grpc::CallbackGenericService {
    class call final : public grpc::ServerGenericBidiReactor {
     public:
      call(service& owner, grpc::GenericCallbackServerContext& context)
          : owner_(owner), context_(context), method_(context.method()) {
        owner_.callers_->begins(context_);
        StartRead(&message_);
      }
      void OnReadDone(bool ok) override {
        owner_.callers_->has_spoken(context_);
        if (!ok) return end({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
        try {
          wire::envelope received(message_);
          from_ = received.from();
          dispatch(received);
        } catch (const wire::malformed_message& e) {
          end({grpc::StatusCode::INVALID_ARGUMENT, e.what()});
        }
      }
      void OnCancel() override {
        if (joined_) {
          owner_.forget_joined(this);
          owner_.store_.lose(from_.rank, from_.incarnation, connection_);
          end(grpc::Status::CANCELLED);
        } else if (holds_ && owner_.store_.forget(shard_, this)) {
          end(grpc::Status::CANCELLED);
        }
      }
      void OnDone() override { delete this; }
      /// Only the first status is sent.
      void end(const grpc::Status& status) {
        if (!ended_.exchange(true)) Finish(detail::status_of(status.error_code(), status.error_message()));
      }

     private:
      using methods = detail::parameter_methods;

      void dispatch(wire::envelope& received) {
        if (from_.run != owner_.run_ || from_.generation != owner_.generation_)
          return end({grpc::StatusCode::FAILED_PRECONDITION,
                      detail::text_of({owner_.name_, " belongs to another run: the clusters differ, or STRATA_RUN_ID does"})});
        const int workers = int(owner_.store_.workers());
        if (from_.rank < 0 || from_.rank >= workers)
          return end({grpc::StatusCode::INVALID_ARGUMENT, detail::text_of({"there is no worker with rank ", from_.rank,
                                                                           " among the ", workers, " of ", owner_.name_})});
        if (method_ == methods::join)
          join(received);
        else if (method_ == methods::leave)
          leave();
        else if (method_ == methods::announce)
          announce(received);
        else if (method_ == methods::assign)
          assign(received);
        else if (method_ == methods::pull)
          pull(received);
        else if (method_ == methods::push)
          push(received);
        else
          end({grpc::StatusCode::UNIMPLEMENTED, detail::text_of({owner_.name_, " has no such method"})});
      }
      auto responder() {
        return [this](parameter_answer<T> a) { answer(std::move(a)); };
      }
      static auto elements_of(wire::envelope& received) {
        return [&received](void* to, std::size_t bytes) { received.read(to, bytes); };
      }
      /// A request that may wait. If its caller has hung up meanwhile, OnCancel came too early to end it.
      template <class F>
      void hold(std::uint32_t shard, F&& f) {
        shard_ = shard;
        holds_ = true;
        f();
        if (context_.IsCancelled() && owner_.store_.forget(shard_, this)) end(grpc::Status::CANCELLED);
      }
      void assign(wire::envelope& received) {
        const auto what = received.body<detail::assign_message>();
        answer(owner_.store_.assign(from_.rank, from_.incarnation, what.shard, what.is_initial, received.left(),
                                    elements_of(received)));
      }
      void pull(wire::envelope& received) {
        const auto what = received.body<detail::pull_message>();
        hold(what.shard, [&] {
          if (what.wants_rows)
            owner_.store_.pull_rows(from_.rank, from_.incarnation, what.shard, what.rows, this, responder());
          else
            owner_.store_.pull(from_.rank, from_.incarnation, what.shard, what.had_weights, this, responder());
        });
      }
      void push(wire::envelope& received) {
        auto what = received.body<detail::push_message>();
        push_request p{.worker = from_.rank,
                       .incarnation = from_.incarnation,
                       .step = what.step,
                       .learning_rate = what.learning_rate,
                       .samples = what.samples,
                       .leaves = what.leaves,
                       .rows = std::move(what.rows),
                       .metric_sums = std::move(what.metric_sums)};
        hold(what.shard,
             [&] { owner_.store_.push(std::move(p), what.shard, this, received.left(), elements_of(received), responder()); });
      }
      void join(wire::envelope& received) {
        control::member who = received.body<control::join_request>().who;
        who.rank = from_.rank, who.incarnation = from_.incarnation;
        if (who.agreement != owner_.program_)
          return end({grpc::StatusCode::FAILED_PRECONDITION,
                      control::disagreement(owner_.name_, "this process does", owner_.program_, who.agreement)});
        who.agreement = {};  // is not kept
        connection_ = owner_.store_.join(std::move(who));
        if (connection_ < 0)
          return end({grpc::StatusCode::FAILED_PRECONDITION,
                      detail::text_of({"this process has been replaced by another one at ", owner_.name_})});
        owner_.callers_->is_member(context_);
        message_ = wire::sealed(control::empty_message{});
        StartWrite(&message_);
        if (!owner_.remember_joined(this)) return end({grpc::StatusCode::UNAVAILABLE, detail::text_of({owner_.name_, " ends"})});
        joined_ = true;
        if (context_.IsCancelled()) OnCancel();  // which gRPC may have called too early
      }
      void leave() {
        owner_.store_.leave(from_.rank, from_.incarnation);
        answer({});
      }
      void announce(const wire::envelope& received) {
        owner_.store_.announce(from_.rank, from_.incarnation,
                               control::printable(received.body<control::announcement>().trouble, 2000));
        answer({});
      }
      void answer(parameter_answer<T> a) {
        if (a.why == detail::refusal::invalid) return end({grpc::StatusCode::INVALID_ARGUMENT, a.text});
        if (a.why == detail::refusal::empty) return end({grpc::StatusCode::NOT_FOUND, a.text});
        if (a.why == detail::refusal::fenced) return end({grpc::StatusCode::FAILED_PRECONDITION, a.text});
        if (a.why == detail::refusal::stalled) return end({grpc::StatusCode::ABORTED, a.text});
        std::vector<grpc::Slice> elements;
        const T* const weights = a.weights.get();
        if (weights) elements.push_back(wire::shared_slice<T>(std::move(a.weights), weights, std::size_t(a.count)));
        if (ended_.exchange(true)) return;
        message_ = wire::sealed(detail::weights_answer{a.version, std::move(a.metric_sums)}, elements);
        StartWriteAndFinish(&message_, {}, grpc::Status::OK);
      }

      service& owner_;
      grpc::GenericCallbackServerContext& context_;
      std::string method_;
      grpc::ByteBuffer message_;
      wire::sender from_{};
      std::uint32_t shard_ = 0;
      long connection_ = 0;
      std::atomic<bool> ended_ = false, joined_ = false, holds_ = false;
    };

   public:
    service(std::string name, std::string run, std::uint64_t generation, std::string program, store& parameters)
        : name_(std::move(name)),
          run_(std::move(run)),
          generation_(generation),
          program_(std::move(program)),
          store_(parameters) {}

    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new call(*this, *context);
    }

    const std::shared_ptr<detail::callers>& who_calls() const { return callers_; }

    void close() {
      store_.close();
      const std::lock_guard lock(mutex_);  // a call is deleted only after its OnCancel, which waits for the lock
      closed_ = true;
      for (call* c : std::exchange(joined_, {})) c->end(grpc::Status::OK);
    }

   private:
    bool remember_joined(call* c) {
      const std::lock_guard lock(mutex_);
      if (!closed_) joined_.insert(c);
      return !closed_;
    }
    void forget_joined(call* c) {
      const std::lock_guard lock(mutex_);
      joined_.erase(c);
    }

    std::string name_, run_;
    std::uint64_t generation_;
    control::agreement program_;
    store& store_;
    const std::shared_ptr<detail::callers> callers_ = std::make_shared<detail::callers>();
    std::recursive_mutex mutex_;  // gRPC may call back at once
    std::set<call*> joined_;
    bool closed_ = false;
  };

  /// A worker makes one call per shard, and repeats calls that were interrupted. All workers may do so at once.
  static detail::server_limits limits_of(const store& parameters) {
    // The list of rows needs less space than the rows, and the metric sums are few.
    const auto parts = std::size_t(parameters.most_parts() + 1);
    const std::size_t message = std::min(parts * parameters.bytes_of_largest() + (256 << 10), std::size_t(INT_MAX));  // for gRPC
    return {.largest_message = message,
            .streams = 2 * parameters.shards() + 8,
            .memory = (std::size_t(64) << 20) + (parts + 3) * parameters.workers() * parameters.bytes(),
            .members = int(parameters.workers()),
            .ping_after = detail::ping_after,
            .ping_timeout = detail::ping_timeout};
  }

  service service_;
  detail::guarded_server server_;
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
