// A parameter server on the network: the shards of a parameter_store behind a generic gRPC service.
// needs: grpc
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/guarded_server.hpp>
#include <strata/distribute/parameter_server/parameter_message.hpp>
#include <strata/distribute/parameter_server/parameter_snapshots.hpp>
#include <strata/distribute/parameter_server/parameter_store.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

namespace detail {

/// Reads a message front to back without making it contiguous first.
class message_reader {
  std::vector<grpc::Slice> slices_;
  std::size_t slice_ = 0, at_ = 0, left_ = 0;

 public:
  explicit message_reader(const grpc::ByteBuffer& message) {
    if (message.Valid() && message.Dump(&slices_).ok())
      for (const grpc::Slice& s : slices_) left_ += s.size();
  }
  std::size_t left() const { return left_; }
  /// At most what is left.
  void operator()(void* to, std::size_t bytes) {
    auto* out = static_cast<std::byte*>(to);
    for (left_ -= bytes; bytes > 0;) {
      const grpc::Slice& s = slices_[slice_];
      const std::size_t some = std::min(bytes, s.size() - at_);
      if (some > 0) std::memcpy(out, s.begin() + at_, some);
      out += some, at_ += some, bytes -= some;
      if (at_ == s.size()) ++slice_, at_ = 0;
    }
  }
};

template <class T>
grpc::Slice slice_of(const T& value) {
  return grpc::Slice(&value, sizeof value);
}
/// Of memory that lives as long as somebody may still send it: nothing is copied.
template <class T>
grpc::Slice slice_of_shared(std::shared_ptr<const T> owner, const T* begin, std::size_t count) {
  auto held = std::make_unique<std::shared_ptr<const T>>(std::move(owner));
  return grpc::Slice(
      const_cast<T*>(begin), count * sizeof(T), [](void* p) { delete static_cast<std::shared_ptr<const T>*>(p); },
      held.release());
}
}  // namespace detail

/// Serves one store until the training is over.
template <class T, optimizer Optimizer>
class parameter_service {
 public:
  using store = parameter_store<T, Optimizer>;

  /// `program` says what is trained, where: a worker that says something else is refused.
  /// Throws strata::error if nobody can listen there, or if the address is open to other machines without TLS.
  parameter_service(const endpoint& where, std::string name, std::string run, std::string program, store& parameters,
                    const control_options& control = {})
      : service_(std::move(name), detail::hash_of(run), std::move(program), parameters),
        server_(where, "the parameter server", service_, control, limits_of(parameters)) {}
  ~parameter_service() { service_.close(); }
  parameter_service(const parameter_service&) = delete;
  parameter_service& operator=(const parameter_service&) = delete;

 private:
  class service final : public grpc::CallbackGenericService {
    class call final : public grpc::ServerGenericBidiReactor {
     public:
      call(service& owner, grpc::GenericCallbackServerContext& context)
          : owner_(owner), context_(context), method_(context.method()) {
        StartRead(&message_);
      }
      void OnReadDone(bool ok) override {
        if (!ok) return end({grpc::StatusCode::INVALID_ARGUMENT, "no message"});
        detail::message_reader read(message_);
        if (read.left() < sizeof header_) return end({grpc::StatusCode::INVALID_ARGUMENT, "the message is too short"});
        read(&header_, sizeof header_);
        if (!header_.is_ours()) return end({grpc::StatusCode::INVALID_ARGUMENT, "this is no message to a parameter server"});
        if (header_.run != owner_.run_)
          return end({grpc::StatusCode::FAILED_PRECONDITION,
                      owner_.name_ + " belongs to another run: the clusters differ, or STRATA_RUN_ID does"});
        if (header_.worker >= owner_.workers()) return end({grpc::StatusCode::INVALID_ARGUMENT, "there is no such worker"});
        if (method_ == detail::parameter_methods::join)
          join(read);
        else if (method_ == detail::parameter_methods::leave)
          leave();
        else if (method_ == detail::parameter_methods::assign)
          answer(owner_.store_.assign(worker(), header_.incarnation, header_.shard, (header_.flags & detail::initial_flag) != 0,
                                      read.left(), read));
        else if (method_ == detail::parameter_methods::pull)
          pull(read);
        else if (method_ == detail::parameter_methods::push)
          push(read);
        else
          end({grpc::StatusCode::UNIMPLEMENTED, "unknown method"});
      }
      void OnCancel() override {
        if (joined_) {
          owner_.forget_joined(this);
          owner_.store_.lose(worker(), header_.incarnation, connection_);
          end(grpc::Status::CANCELLED);
        } else if (holds_ && owner_.store_.forget(header_.shard, this)) {
          end(grpc::Status::CANCELLED);
        }
      }
      void OnDone() override { delete this; }
      /// Once.
      void end(const grpc::Status& status) {
        if (!ended_.exchange(true)) Finish(status);
      }

     private:
      int worker() const { return int(header_.worker); }
      auto responder() {
        return [this](parameter_answer<T> a) { answer(std::move(a)); };
      }
      /// What may wait: if the caller has hung up in the meantime, nobody else ends it.
      template <class F>
      void hold(F&& f) {
        holds_ = true;
        f();
        if (context_.IsCancelled() && owner_.store_.forget(header_.shard, this)) end(grpc::Status::CANCELLED);
      }
      void pull(detail::message_reader& read) {
        const bool had_some = (header_.flags & detail::again_flag) != 0, some_rows = (header_.flags & detail::rows_flag) != 0;
        hold([&] {
          if (some_rows)
            owner_.store_.pull_rows(worker(), header_.incarnation, header_.shard, this, read.left(), read, responder());
          else
            owner_.store_.pull(worker(), header_.incarnation, header_.shard, had_some, this, responder());
        });
      }
      void push(detail::message_reader& read) {
        const push_request what{worker(), header_.incarnation, header_.step, header_.learning_rate,
                                header_.samples <= 1u << 30 ? int(header_.samples) : 0, header_.leaves};
        hold([&] { owner_.store_.push(what, header_.shard, this, read.left(), read, responder()); });
      }
      void join(detail::message_reader& read) {
        std::string theirs(std::min<std::size_t>(read.left(), 8192), '\0');
        read(theirs.data(), theirs.size());
        if (theirs != owner_.program_)
          return end({grpc::StatusCode::FAILED_PRECONDITION, owner_.name_ + " does not train what this process does: '" +
                                                                 owner_.program_ + "' there, '" + theirs + "' here"});
        connection_ = owner_.store_.join(worker(), header_.incarnation);
        if (connection_ < 0)
          return end(
              {grpc::StatusCode::FAILED_PRECONDITION, "this process has been replaced by another one at " + owner_.name_});
        message_ = detail::buffer_of("welcome");
        StartWrite(&message_);
        if (!owner_.remember_joined(this)) return end({grpc::StatusCode::UNAVAILABLE, owner_.name_ + " ends"});
        joined_ = true;
        if (context_.IsCancelled()) OnCancel();  // the real one has come too early
      }
      void leave() {
        owner_.store_.leave(worker(), header_.incarnation);
        answer({});
      }
      void answer(parameter_answer<T> a) {
        if (a.why == refusal::invalid) return end({grpc::StatusCode::INVALID_ARGUMENT, a.text});
        if (a.why == refusal::empty) return end({grpc::StatusCode::NOT_FOUND, a.text});
        if (a.why == refusal::fenced) return end({grpc::StatusCode::FAILED_PRECONDITION, a.text});
        if (a.why == refusal::stalled) return end({grpc::StatusCode::ABORTED, a.text});
        detail::parameter_header header = header_;
        header.step = a.version;
        std::vector<grpc::Slice> slices{detail::slice_of(header)};
        const T* const weights = a.weights.get();
        if (weights) slices.push_back(detail::slice_of_shared<T>(std::move(a.weights), weights, std::size_t(a.count)));
        if (!a.tallies.empty()) slices.push_back(grpc::Slice(a.tallies.data(), a.tallies.size() * sizeof(double)));
        if (ended_.exchange(true)) return;
        message_ = grpc::ByteBuffer(slices.data(), slices.size());
        StartWriteAndFinish(&message_, {}, grpc::Status::OK);
      }

      service& owner_;
      grpc::GenericCallbackServerContext& context_;
      std::string method_;
      grpc::ByteBuffer message_;
      detail::parameter_header header_{};
      long connection_ = 0;
      std::atomic<bool> ended_ = false, joined_ = false, holds_ = false;
    };

   public:
    service(std::string name, std::uint64_t run, std::string program, store& parameters)
        : name_(std::move(name)), run_(run), program_(std::move(program)), store_(parameters) {}

    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      return new call(*this, *context);
    }

    void close() {
      store_.close();
      const std::lock_guard lock(mutex_);  // OnCancel waits for it, and a call is deleted only after that
      closed_ = true;
      for (call* c : std::exchange(joined_, {})) c->end(grpc::Status::OK);
    }

   private:
    std::size_t workers() const { return store_.workers(); }
    bool remember_joined(call* c) {
      const std::lock_guard lock(mutex_);
      if (!closed_) joined_.insert(c);
      return !closed_;
    }
    void forget_joined(call* c) {
      const std::lock_guard lock(mutex_);
      joined_.erase(c);
    }

    std::string name_;
    std::uint64_t run_;
    std::string program_;
    store& store_;
    std::recursive_mutex mutex_;  // gRPC may call back at once
    std::set<call*> joined_;
    bool closed_ = false;
  };

  /// A worker calls once for each shard, and again what was interrupted; all may do so at once.
  static detail::server_limits limits_of(const store& parameters) {
    // The names of rows take no more than the rows do, and tallies little.
    const auto parts = std::size_t(parameters.most_parts() + 1);
    const std::size_t message = parts * std::size_t(largest_shard_bytes) + (256 << 10);
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

/// Returns when the chief has left and all other workers have left or are gone; saves snapshots until then.
/// Throws communication_error if nobody comes in time, or all are gone before the chief has left.
template <class T, optimizer Optimizer>
void serve_until_over(parameter_store<T, Optimizer>& parameters, const std::string& chief,
                      std::chrono::milliseconds start_timeout, parameter_snapshots snapshots = {}) {
  using namespace std::chrono_literals;
  const auto began = std::chrono::steady_clock::now();
  for (;; std::this_thread::sleep_for(50ms)) {
    parameters.tick();
    snapshots.save_when_due(parameters);
    if (parameters.is_deserted()) {
      if (parameters.chief_has_left()) return snapshots.remove();
      throw communication_error("all workers are gone, but " + chief + " has not said that the training is over");
    }
    if (!parameters.anybody_came() && std::chrono::steady_clock::now() - began > start_timeout)
      throw communication_error("no worker has come within " +
                                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(start_timeout).count()) + " s");
  }
}

}  // namespace strata
